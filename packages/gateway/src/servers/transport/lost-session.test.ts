import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  error,
  type Exchange,
  initialized,
  json,
  result,
  type Script,
  startScripted,
  status,
  tool,
} from '../../../fixtures/scripted-http.ts'
import { serverConfig, testUpstream, until } from '../../../fixtures/servers.ts'
import type { ServerConfig } from '../../config/config.ts'

const { signal } = new AbortController()
const call = { method: 'tools/call' as const, params: { name: 't', arguments: {} }, caller: {}, signal }
const read = { method: 'resources/read' as const, params: { uri: 'file:///x' }, caller: {}, signal }
const never = { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } }

type Write = (exchange: Exchange) => void

const rpc =
  (code: number, message: string, httpStatus = 200): Write =>
  ({ message: { id }, res }) =>
    json(res, { jsonrpc: '2.0', id, error: { code, message } }, httpStatus)

/** A server that forgets its session, and then answers everything in it with `lost`. */
async function forgetful(
  t: TestContext,
  lost: Write,
  {
    script = {},
    session: first = 's1',
    given = {},
  }: { script?: Script; session?: string; given?: Partial<ServerConfig> } = {},
) {
  const ran = { calls: 0, reads: 0 }
  let epoch = 1
  const name = () => (first === '' ? '' : `s${epoch}`)
  let isInitialized = true
  const inSession =
    (answer: Write): Write =>
    (exchange) => {
      const known = first === '' ? isInitialized : exchange.headers['mcp-session-id'] === name()
      return known ? answer(exchange) : lost(exchange)
    }
  const all: Script = {
    initialize: (exchange) => {
      isInitialized = true
      initialized(exchange, { session: name() })
    },
    'tools/list': (exchange) => result(exchange, { tools: [tool('t')] }),
    'tools/call': (exchange) => result(exchange, { content: [], ran: ++ran.calls }),
    'resources/read': (exchange) => result(exchange, { contents: [], ran: ++ran.reads }),
    ping: (exchange) => result(exchange, {}),
    ...script,
  }
  const server = await startScripted(
    t,
    Object.fromEntries(
      Object.entries(all).map(([method, answer]) => [method, method === 'initialize' ? answer : inSession(answer)]),
    ),
  )
  const upstream = testUpstream(t, serverConfig({ name: 'remote', url: server.url, ...given }), never)
  await upstream.start()
  const forget = () => {
    epoch++
    isInitialized = false
  }
  return { server, upstream, ran, forget }
}

/** How servers say that they do not know a session. */
const LOST: readonly (readonly [string, Write])[] = [
  ['404 and a text', status(404, 'session not found')],
  ['404 and the code of .NET and TypeScript', rpc(-32_001, 'Session not found', 404)],
  ['404 and the code of Python', rpc(-32_600, 'Session has been terminated', 404)],
  ['400 and a text', status(400, 'Invalid session ID')],
  ['400 and the code of TypeScript', rpc(-32_000, 'Bad Request: No valid session ID provided', 400)],
  ['400 and another code', rpc(-32_602, 'Invalid session', 400)],
  ['401 of rmcp', status(401, 'Unauthorized: Session not found')],
  ['401 alone', status(401)],
  ['410', status(410)],
  ['410 and an error', rpc(-32_000, 'Gone', 410)],
  ['403 and a text', status(403, 'session expired')],
  ['409', rpc(-32_000, 'Conflict: unknown session', 409)],
  ['500 and an error', rpc(-32_603, 'Session not found: s1', 500)],
  ['500 and a text', status(500, 'no such session')],
  ['200 and the code of TypeScript', rpc(-32_001, 'Session not found')],
  ['200 and the code of JSON-RPC', rpc(-32_600, 'Session terminated')],
  ['200 and another code', rpc(-32_002, 'Server not initialized')],
  [
    '200 and an event that is not JSON-RPC',
    ({ res }) =>
      void res.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"error":"Session not found"}\n\n'),
  ],
]

describe('a server that has lost a session', () => {
  for (const [what, lost] of LOST)
    it(`and answers ${what} gets a new one, and runs each call once`, async (t) => {
      const { server, upstream, ran, forget } = await forgetful(t, lost)
      await upstream.call(call)
      forget()
      await Promise.all([upstream.call(call), upstream.call(call)])
      assert.equal(ran.calls, 3)
      assert.equal(server.sent('initialize').length, 2, 'once for all')
      assert.equal(upstream.state.restarts, 0)
    })

  for (const [what, lost] of [
    ['401', status(401)],
    ['an error of JSON-RPC', rpc(-32_001, 'Session not found')],
  ] as const)
    it(`runs a call that was refused with ${what} before the new session, and answered after it`, async (t) => {
      const held: (() => void)[] = []
      let holds = false
      const slow: Write = (exchange) => (holds ? void held.push(() => lost(exchange)) : lost(exchange))
      const { server, upstream, ran, forget } = await forgetful(t, slow)
      await upstream.call(call)
      forget()
      holds = true
      const late = upstream.call(call)
      await until(() => held.length === 1)
      holds = false
      await upstream.call(call)
      for (const refuse of held) refuse()
      await late
      assert.equal(ran.calls, 3)
      assert.equal(server.sent('initialize').length, 2)
    })

  for (const [what, lost] of [
    ['400', rpc(-32_000, 'Bad Request: Server not initialized', 400)],
    ['an error', rpc(-32_602, 'Received request before initialization was complete')],
  ] as const)
    it(`that had no name gets a new handshake when it answers ${what}`, async (t) => {
      const { server, upstream, ran, forget } = await forgetful(t, lost, { session: '' })
      await upstream.call(call)
      forget()
      await upstream.call(call)
      assert.equal(ran.calls, 2)
      assert.equal(server.sent('initialize').length, 2)
    })

  for (const code of [502, 503, 504])
    it(`and answers ${code} gets a new one, and no call again that may have run`, async (t) => {
      const { server, upstream, ran, forget } = await forgetful(t, status(code, 'no healthy upstream'))
      await upstream.call(call)
      forget()
      await assert.rejects(upstream.call(call), { message: new RegExp(`HTTP ${code}`) })
      await upstream.call(call)
      assert.equal(ran.calls, 2)
      assert.equal(server.sent('initialize').length, 2)
      assert.equal(upstream.state.restarts, 0)
    })

  it('and answers 503 is asked again for what only reads', async (t) => {
    const { upstream, ran, forget } = await forgetful(t, status(503))
    forget()
    await upstream.call(read)
    assert.equal(ran.reads, 1)
  })

  for (const [annotations, ran] of [
    [{ readOnlyHint: true }, 1],
    [{ idempotentHint: true }, 1],
    [{ idempotentHint: false }, 0],
    [{}, 0],
  ] as const)
    it(`and answers 503 is called again ${ran} times with the operator's ${JSON.stringify(annotations)}`, async (t) => {
      const tools = new Map([['t*', { annotations }]])
      // The word of the server itself does not count.
      const claims = { annotations: { readOnlyHint: true, idempotentHint: true } }
      const script: Script = { 'tools/list': (exchange) => result(exchange, { tools: [tool('t', claims)] }) }
      const { upstream, ran: runs, forget } = await forgetful(t, status(503), { script, given: { tools } })
      forget()
      await upstream.call(call).catch(() => undefined)
      assert.equal(runs.calls, ran)
    })

  it('and whose new one answers 401 too goes down, and says why', async (t) => {
    let ended = false
    const script: Script = {
      'tools/list': (exchange) => (ended ? status(401)(exchange) : result(exchange, { tools: [tool('t')] })),
      'tools/call': (exchange) => (ended ? status(401)(exchange) : result(exchange, { content: [] })),
      ping: (exchange) => (ended ? status(401)(exchange) : result(exchange, {})),
    }
    const { server, upstream } = await forgetful(t, status(401), { script })
    ended = true
    await assert.rejects(upstream.call(call), { message: /asked for other credentials \(HTTP 401\)$/ })
    await until(() => upstream.state.status === 'down')
    assert.equal(upstream.state.reason, 'asked for other credentials (HTTP 401)')
    assert.equal(server.sent('tools/call').length, 2)
  })
})

describe('a server that still knows the session', () => {
  for (const [what, answer] of [
    ['an error about a session of its own', rpc(-32_001, 'Session not found')],
    ['an error about a browser', rpc(-32_603, 'The browser session has crashed', 500)],
    ['a fault about initialization', status(500, 'could not initialize the database')],
    ['403 about a session', status(403, 'session of the user expired')],
    ['401', status(401)],
  ] as const)
    it(`keeps it, and gets no call again, when a tool answers ${what}`, async (t) => {
      let calls = 0
      const { server, upstream } = await forgetful(t, status(404), {
        script: {
          'tools/call': (exchange) => {
            calls++
            answer(exchange)
          },
        },
      })
      await assert.rejects(upstream.call(call))
      assert.equal(calls, 1)
      assert.equal(server.sent('initialize').length, 1)
    })

  it('gets no call again that another refusal than that of the session followed', async (t) => {
    let calls = 0
    let lost = false
    const refuse = rpc(-32_001, 'Session not found')
    const { server, upstream } = await forgetful(t, refuse, {
      script: {
        'tools/call': (exchange) => {
          calls++
          lost = true
          rpc(-32_000, 'The session broke while the tool ran')(exchange)
        },
        ping: (exchange) => (lost ? refuse(exchange) : result(exchange, {})),
      },
    })
    await assert.rejects(upstream.call(call), {
      rpc: { code: -32_000, message: 'The session broke while the tool ran' },
    })
    assert.equal(calls, 1)
    assert.equal(server.sent('initialize').length, 2, 'the next call has a session that works')
  })

  it('is not asked about it for other errors', async (t) => {
    const { server, upstream } = await forgetful(t, status(404), {
      script: { 'tools/call': (exchange) => error(exchange, -32_602) },
    })
    await assert.rejects(upstream.call(call), { code: 'upstream_rpc' })
    assert.equal(server.sent('ping').length, 0)
  })
})
