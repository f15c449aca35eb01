import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type GateOptions } from '@toolgate/core'
import { callTool } from './calls.ts'
import type { JsonRpcError } from './protocol.ts'
import { type McpAnswer, McpError, toAnswer } from './results.ts'
import { ToolLists } from './tool-lists.ts'

const RESULT = {
  content: [{ type: 'text', text: 'read' }],
  structuredContent: { bytes: 4 },
  isError: false,
  _meta: { 'example.com/kept': 1 },
  extra: ['kept'],
}

interface Asked {
  readonly name?: string
  readonly input?: unknown
  readonly execute?: (input: unknown) => unknown
  readonly policy?: GateOptions['policy']
  readonly limits?: GateOptions['limits']
  readonly times?: number
}

async function ask({
  name = 'files__read',
  input = {},
  execute = () => RESULT,
  policy = [],
  limits = [],
  times = 1,
}: Asked = {}) {
  const tool = defineTool({
    namespace: 'files',
    name: 'read',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
    execute,
  })
  const other = defineTool({ namespace: 'files', name: 'list', execute })
  const gate = createGate({ tools: [tool, other], policy, limits })
  const names = new ToolLists(gate).names()
  const view = await gate.view({ user: 'vera' })
  const signal = new AbortController().signal
  const once = async () => toAnswer(await callTool({ view, names, name, input, signal }))
  for (let i = 1; i < times; i++) await once()
  return once()
}

function toldOf(answer: McpAnswer): string {
  assert.ok('result' in answer)
  assert.equal(answer.result.isError, true)
  const [block] = answer.result.content as [{ type: string; text: string }]
  assert.equal(block.type, 'text')
  return block.text
}

const fails = (error: unknown) => ({
  execute: async () => {
    throw error
  },
})

/** The error that a gateway throws. */
class ServerError extends McpError {
  readonly rpc: JsonRpcError | undefined

  constructor(message: string, rpc?: JsonRpcError) {
    super(message)
    this.rpc = rpc
  }
}

describe('callTool', () => {
  it('returns the result of the tool unchanged', async () => {
    assert.deepEqual(await ask(), { result: RESULT })
  })

  it('returns an error of the tool as a result', async () => {
    const failed = { content: [{ type: 'text', text: 'no such file' }], isError: true }
    assert.deepEqual(await ask({ execute: () => failed }), { result: failed })
  })

  it('answers an unknown tool like a denied one, and names the other tools by their wire names', async () => {
    const denied = await ask({ policy: { deny: ['files:read'] } })
    assert.equal(toldOf(denied), 'Tool "files__read" is not available. Available tools: files__list.')
    const missing = await ask({ name: 'files__reat', policy: { deny: ['files:read'] } })
    assert.deepEqual(missing, JSON.parse(JSON.stringify(denied).replace('files__read', 'files__reat')))
  })

  it('accepts no tool id and no other spelling as a name', async () => {
    let ran = 0
    const execute = () => {
      ran++
      return RESULT
    }
    for (const name of ['files:read', 'FILES__READ', 'files__read ', 'files__read\0', 'files___read', '__proto__', ''])
      assert.match(toldOf(await ask({ name, execute })), /is not available/, name)
    assert.equal(ran, 0)
  })

  it('describes what is wrong with an input', async () => {
    assert.match(toldOf(await ask({ input: { path: 5 } })), /^TOOL_CALL_BLOCKED: invalid input at "\/path"/)
  })

  it('says that a person is asked, and has the id of the approval in _meta', async () => {
    const waiting = await ask({ policy: { ask: ['files:read'] } })
    assert.equal(toldOf(waiting), 'Waiting for approval of files__read.')
    assert.ok('result' in waiting)
    const approval = waiting.result._meta?.['dev.toolgate/approval'] as { id: string; expiresAt: number }
    assert.equal(typeof approval.id, 'string')
    assert.ok(approval.expiresAt > Date.now())
  })

  it('has the whole seconds until a retry in _meta after a rate limit', async () => {
    const limited = await ask({ limits: ['files:read:1/60'], times: 2 })
    assert.equal(toldOf(limited), 'TOOL_CALL_BLOCKED: rate limited (1/60). Try again in 60 s.')
    assert.ok('result' in limited)
    assert.deepEqual(limited.result._meta, { 'dev.toolgate/retry-after': 60 })
  })

  it('has no retry time if another reason decides, so that a denied tool looks like an unknown one', async () => {
    for (const policy of [{ deny: ['files:read'] }, { deny: [{ match: 'files:read', message: 'No.' }] }]) {
      const denied = await ask({ policy, limits: ['files:read:1/60'], times: 3 })
      assert.ok('result' in denied)
      assert.equal('_meta' in denied.result, false)
    }
  })

  it('returns the JSON-RPC error of an upstream as a JSON-RPC error', async () => {
    const rpc = { code: -32_050, message: 'no such thing', data: { hint: 'try another' } }
    assert.deepEqual(await ask(fails(new ServerError('failed', rpc))), { error: rpc })
    const bare = { code: -32_602, message: 'Unknown tool' }
    assert.deepEqual(await ask(fails(new ServerError('failed', bare))), { error: bare })
  })

  it('passes on the error of an upstream that requires a client capability', async () => {
    const rpc = { code: -32_021, message: 'needs sampling', data: { requiredCapabilities: { sampling: {} } } }
    assert.deepEqual(await ask(fails(new ServerError('failed', rpc))), { error: rpc })
  })

  it('replaces the code of an error about the hop to the upstream, because a client would act on it', async () => {
    for (const [code, why] of [
      [-32_020, 'The server refused the headers of the request to it'],
      [-32_022, 'The server does not speak the MCP revision of the request to it'],
    ] as const) {
      const rpc = { code, message: 'wrong', data: { supported: ['2025-11-25'] } }
      assert.deepEqual(await ask(fails(new ServerError('failed', rpc))), {
        error: { code: -32_603, message: `${why} (${code}: wrong).` },
      })
    }
  })

  it('reports an unreachable server in a result, which the model can read', async () => {
    const down = new ServerError('server "files" is not running')
    assert.match(toldOf(await ask(fails(down))), /files__read.*failed: server "files" is not running/)
  })
})
