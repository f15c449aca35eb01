import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '@toolgate/values/json'
import type { OwnAnswer } from './gateway-link.ts'
import { ToolHeaders } from './tool-headers.ts'

const SESSION = { era: 'modern', id: undefined, headers: [] } as const
const ROUTED = { name: 'route', inputSchema: { properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } }
const call = (name: string, method = 'tools/call') => ({
  id: 1,
  method,
  params: { name, arguments: { region: 'eu' }, _meta: { a: 1 } },
  text: '',
})

/** A gateway that lists these pages. */
function setUp(pages: readonly (JsonObject | undefined)[]) {
  const asked: unknown[] = []
  const ask = async ({ params }: { params: JsonObject }): Promise<OwnAnswer | undefined> => {
    asked.push(params)
    const result = pages[Math.min(asked.length, pages.length) - 1]
    return result && { message: { jsonrpc: '2.0', id: 1, result }, sessionId: undefined }
  }
  return { asked, headers: new ToolHeaders({ ask }) }
}

describe('ToolHeaders', () => {
  it('knows none until it has read the list, over all its pages', async () => {
    const { asked, headers } = setUp([{ tools: [], nextCursor: 'b' }, { tools: [ROUTED] }])
    assert.deepEqual(headers.of(call('route')), [])
    assert.equal(await headers.learn(call('route'), SESSION), true)
    assert.deepEqual(asked, [{ _meta: { a: 1 } }, { _meta: { a: 1 }, cursor: 'b' }])
    assert.deepEqual(headers.of(call('route')), ['mcp-param-Region', 'eu'])
    assert.deepEqual(headers.of(call('route', 'prompts/get')), [])
  })

  it('learns nothing of another tool, of a list that is none, or of another method', async () => {
    for (const [pages, name, method] of [
      [[{ tools: [ROUTED] }], 'other', 'tools/call'],
      [[{ tools: 'none' }], 'route', 'tools/call'],
      [[undefined], 'route', 'tools/call'],
      [[{ tools: [ROUTED] }], 'route', 'prompts/get'],
    ] as const)
      assert.equal(await setUp(pages).headers.learn(call(name, method), SESSION), false)
  })

  it('ends with a list that never ends', async () => {
    const { asked, headers } = setUp([{ tools: [], nextCursor: 'again' }])
    assert.equal(await headers.learn(call('route'), SESSION), false)
    assert.equal(asked.length, 100)
  })
})
