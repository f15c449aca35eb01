import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Tool } from '@toolgate/core'
import { definePrompt, defineResource, defineTemplate } from '@toolgate/core/toolset'
import { ResourceOwners, RpcError, ToolLists } from '@toolgate/mcp'
import { completeArgument } from './complete.ts'
import type { McpRequest } from '../../calls/request.ts'

const TEMPLATE = 'file:///{+path}'

/** Serves the completions of a server `s`, of which everything is allowed but what is secret. */
function serve(complete: () => unknown, asked: unknown[] = []) {
  const own = [
    defineTemplate({ namespace: 's', uriTemplate: TEMPLATE }),
    definePrompt({ namespace: 's', name: 'p', execute: () => ({}) }),
  ]
  const gate = createGate({
    sources: [
      {
        name: 's',
        namespaces: ['s'],
        tools: (): readonly Tool[] => own,
        unlisted: (uri: string) => defineResource({ namespace: 's', uri, execute: () => ({}) }),
      },
    ],
    policy: {
      allow: ['resource:s:*', 'prompt:s:*'],
      deny: ['resource:s:file:///my%20secret*', 'resource:s:x://secret/*'],
    },
  })
  const owners = new ResourceOwners(gate.catalog, () => ['s'])
  const names = new ToolLists(gate, { offer: 'never' })
  return async (ref: object) => {
    const params = { ref, argument: { name: 'path', value: '' } }
    const request = { params, caller: {}, link: { era: 'modern' }, signal: new AbortController().signal }
    return completeArgument(
      { gate, owners, names, complete: async (_, { ref: sent }) => (asked.push(sent), complete() as never) },
      request as never as McpRequest,
    )
  }
}

const values =
  (all: readonly string[], more: object = {}) =>
  () => ({ completion: { values: all, ...more } })
const OF_TEMPLATE = { type: 'ref/resource', uri: TEMPLATE }
const OF_PROMPT = { type: 'ref/prompt', name: 's__p' }

describe('a completion', () => {
  it('leaves out a hidden resource whose name the server has encoded already', async () => {
    const answer = await serve(values(['my%20secret', 'my secret', 'my%20notes']))(OF_TEMPLATE)
    assert.deepEqual(answer, { result: { completion: { values: ['my%20notes'], total: 1 } } })
  })

  it('leaves out a hidden resource however its name is coded, and shows others', async () => {
    const all = ['m%79%20secret', 'my%20%73ecret%28x%29', 'a%40b', 'a@b', 'my%20(x)']
    const answer = await serve(values(all))(OF_TEMPLATE)
    assert.deepEqual(answer, { result: { completion: { values: ['a%40b', 'a@b', 'my%20(x)'], total: 3 } } })
  })

  it('of a URI asks its server in the spelling that is decided', async () => {
    const asked: unknown[] = []
    const ask = serve(values([]), asked)
    for (const uri of ['x://open/%28a%29', TEMPLATE]) await ask({ type: 'ref/resource', uri })
    assert.deepEqual(asked, [{ type: 'ref/resource', uri: 'x://open/(a)' }, OF_TEMPLATE])
  })

  it('of hidden values only reads as one of nothing, whatever the server says is more', async () => {
    const hidden = await serve(values(['my%20secret'], { total: 300, hasMore: true }))(OF_TEMPLATE)
    const nothing = await serve(values([], { total: 0, hasMore: false }))(OF_TEMPLATE)
    assert.deepEqual(hidden, nothing)
  })

  it('of a prompt leaves out the URIs of hidden resources, listed or not, and tells no number beside URIs', async () => {
    const some = ['x://secret/1', 'X://secret/1', 'x://open/1', 'python:3', 'word']
    const answer = await serve(values(some, { total: 9 }))(OF_PROMPT)
    assert.deepEqual(answer, { result: { completion: { values: ['x://open/1', 'python:3', 'word'], total: 3 } } })
    const words = await serve(values(['a', 'b'], { total: 9 }))(OF_PROMPT)
    assert.deepEqual(words, { result: { completion: { values: ['a', 'b'], total: 9 } } })
  })

  it('of a URI that its server does not have is answered as that of a hidden one', async () => {
    const ask = serve(() => {
      throw new RpcError(-32_602, 'Resource x://open/1 not found')
    })
    const errorOf = async (uri: string) => JSON.stringify(await ask({ type: 'ref/resource', uri })).replace(uri, 'URI')
    assert.equal(await errorOf('x://open/1'), await errorOf('x://secret/1'))
  })
})
