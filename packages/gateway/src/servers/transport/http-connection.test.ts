import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import { startModernServer } from '../../../fixtures/modern-server.ts'
import {
  discovered,
  error,
  events,
  type Exchange,
  initialized,
  json,
  result,
  type Script,
  type ScriptedServer,
  startScripted,
  status,
  tool,
} from '../../../fixtures/scripted-http.ts'
import { runFor, serverConfig, testUpstream, type TestUpstream, until } from '../../../fixtures/servers.ts'
import type { ServerConfig } from '../../config/config.ts'
import { findFreePort } from './open.ts'

const { signal } = new AbortController()
const call = (name: string, input: unknown = {}) => ({
  method: 'tools/call' as const,
  params: { name, arguments: input },
  caller: {},
  signal,
})
const never = { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } }
const modernScript: Script = {
  'server/discover': (exchange) => discovered(exchange),
  'tools/list': (exchange) => result(exchange, { tools: [tool('t')], resultType: 'complete', ttlMs: 0 }),
  'tools/call': (exchange) => result(exchange, { content: [], resultType: 'complete' }),
}

async function scripted(
  t: TestContext,
  script: Script,
  given: Partial<ServerConfig> = {},
): Promise<{ server: ScriptedServer; upstream: TestUpstream }> {
  const server = await startScripted(t, script)
  const upstream = testUpstream(t, serverConfig({ name: 'remote', url: server.url, ...given }), never)
  await upstream.start()
  return { server, upstream }
}

/** Begins the stream of `subscriptions/listen` with what the server will announce. */
function acknowledge({ res }: Exchange, notifications: object = { toolsListChanged: true }) {
  events(res)({ method: 'notifications/subscriptions/acknowledged', params: { notifications } })
  return res
}

/** Answers only in the session `current()`, as a server does that has forgotten all others. */
const inSession =
  (current: () => string, lost: (exchange: Exchange) => void, answer: (exchange: Exchange) => void) =>
  (exchange: Exchange) =>
    exchange.headers['mcp-session-id'] === current() ? answer(exchange) : lost(exchange)

describe('an upstream of MCP 2026-07-28', () => {
  async function modern(t: TestContext, given: Partial<ServerConfig> = {}) {
    const server = await startModernServer({ legacy: 'reject' })
    t.after(() => server.close())
    const upstream = testUpstream(t, serverConfig({ name: 'modern', url: server.url, ...given }))
    await upstream.start()
    return { server, upstream }
  }

  it('is found by asking', async (t) => {
    const { upstream } = await modern(t)
    const { since: _since, ...state } = upstream.state
    assert.deepEqual(state, {
      status: 'ready',
      restarts: 0,
      era: 'modern',
      protocolVersion: '2026-07-28',
      serverInfo: { name: 'modern-fixture', version: '1.2.3' },
      has: ['tools'],
      tasks: false,
      rejected: [],
    })
    assert.equal(upstream.items.tools.length, 10)
    assert.equal(upstream.items.tools.find(({ name }) => name === 'add')?.title, 'Addition')
  })

  it('answers with results that are passed on untouched', async (t) => {
    const { server, upstream } = await modern(t, { era: 'modern' })
    const added = await upstream.call(call('add', { a: 1, b: 2 }))
    assert.deepEqual(added.structuredContent, { sum: 3 })
    assert.equal(added['resultType'], 'complete')
    const echoed = await upstream.call(call('echo', { message: 'hi' }))
    assert.deepEqual(echoed['_meta'], {
      'example.com/kept': true,
      'io.modelcontextprotocol/serverInfo': { name: 'modern-fixture', version: '1.2.3' },
    })
    assert.equal((await upstream.call(call('fail'))).isError, true)
    assert.deepEqual(Object.fromEntries(server.counts), { add: 1, echo: 1, fail: 1 })
  })

  it('is called by names that headers cannot hold, and gets arguments in headers', async (t) => {
    const { upstream } = await modern(t)
    const textOf = async (name: string, input: object) =>
      JSON.stringify((await upstream.call(call(name, input))).content)
    assert.match(await textOf('dotted.name-with_all', {}), /dotted/)
    assert.match(await textOf('größe', {}), /16 cm/)
    assert.match(await textOf('by_region', { region: 'north' }), /north north/)
    assert.match(await textOf('by_region', { region: 'Köln' }), /Köln =\?base64\?S8O2bG4=\?=/)
  })

  it('reports progress', async (t) => {
    const { upstream } = await modern(t)
    const seen: unknown[] = []
    const onProgress = (progress: unknown) => void seen.push(progress)
    await upstream.call({ ...call('slow', { steps: 2 }), onProgress })
    assert.deepEqual(seen, [
      { progress: 1, total: 2, message: 'step 1' },
      { progress: 2, total: 2, message: 'step 2' },
    ])
  })

  it('answers errors that keep their code and data', async (t) => {
    const { upstream } = await modern(t)
    await assert.rejects(upstream.call(call('rpc_error')), {
      code: 'upstream_rpc',
      rpc: { code: -32_050, message: 'no such thing', data: { hint: 'try another' } },
    })
    await assert.rejects(upstream.call(call('no_such_tool')), { code: 'upstream_rpc' })
  })

  it('may answer that it needs more input, and gets the answers with its own state', async (t) => {
    const { upstream } = await modern(t)
    const asked = await upstream.call({ ...call('ask_back'), capabilities: { elicitation: { form: {} } } })
    assert.equal(asked['resultType'], 'input_required')
    assert.equal(asked['requestState'], 'somewhere')
    const inputResponses = { name: { action: 'accept', content: { name: 'Vera' } } }
    const answered = await upstream.call({
      ...call('ask_back'),
      answers: { inputResponses, requestState: 'somewhere' },
    })
    assert.deepEqual(answered.content, [{ type: 'text', text: 'Hello Vera, from somewhere.' }])
  })

  it('learns with each call what its client can do, and nothing from any other', async (t) => {
    const { server, upstream } = await scripted(t, modernScript)
    const elicitation = { form: {} }
    await upstream.call({ ...call('t'), capabilities: { elicitation }, logLevel: 'info' })
    await upstream.call(call('t'))
    const key = 'io.modelcontextprotocol/clientCapabilities'
    const metas = server.sent('tools/call').map(({ params }) => params?.['_meta'] as Record<string, unknown>)
    assert.deepEqual(
      metas.map((meta) => [meta[key], meta['io.modelcontextprotocol/logLevel']]),
      [
        [{ elicitation }, 'info'],
        [{}, undefined],
      ],
    )
  })

  for (const [what, more] of [
    ['nothing', {}],
    ['requests that are none', { inputRequests: [1] }],
    ['a request without a method', { inputRequests: { a: { params: {} } } }],
    ['a state that is no text', { requestState: 7 }],
  ] as const) {
    it(`must ask for input with ${what === 'nothing' ? 'something' : `more than ${what}`}`, async (t) => {
      const asks: Script = {
        ...modernScript,
        'tools/call': (exchange) => result(exchange, { resultType: 'input_required', ...more }),
      }
      const { upstream } = await scripted(t, asks)
      await assert.rejects(upstream.call(call('t')), { code: 'upstream_protocol', message: /input_required/ })
    })
  }

  it('sees a closed connection when a caller aborts', async (t) => {
    let closed = false
    const { server, upstream } = await scripted(t, {
      ...modernScript,
      'tools/call': ({ res }) => res.on('close', () => (closed = true)),
    })
    const leaving = new AbortController()
    const hanging = upstream.call({ ...call('t'), signal: leaving.signal })
    await until(() => server.sent('tools/call').length === 1)
    leaving.abort()
    await assert.rejects(hanging, { code: 'aborted' })
    await until(() => closed)
    assert.deepEqual(server.sent('notifications/cancelled'), [])
    assert.equal(upstream.state.status, 'ready')
  })

  it('gets the headers that repeat its body', async (t) => {
    const { server, upstream } = await scripted(t, modernScript)
    await upstream.call(call('t'))
    const { headers, message } = server.seen.at(-1) ?? assert.fail()
    assert.equal(headers['mcp-protocol-version'], '2026-07-28')
    assert.equal(headers['mcp-method'], 'tools/call')
    assert.equal(headers['mcp-name'], 't')
    assert.equal(headers['mcp-session-id'], undefined)
    assert.ok(Number.isInteger(message.id))
  })

  it('has no way to send requests: a call in which it does fails', async (t) => {
    const { server, upstream } = await scripted(t, {
      ...modernScript,
      'tools/call': ({ res }) => events(res)({ id: 1, method: 'roots/list' }),
    })
    await assert.rejects(upstream.call(call('t')), {
      code: 'upstream_protocol',
      message: /sent the request roots\/list/,
    })
    assert.ok(!server.seen.some(({ message }) => message.error !== undefined))
  })

  it('announces that its tools changed on the stream that it is asked for', async (t) => {
    const { server, upstream } = await modern(t)
    server.remove('echo')
    await until(() => upstream.items.tools.every(({ name }) => name !== 'echo'))
    server.remove('add')
    await until(() => upstream.items.tools.every(({ name }) => name !== 'add'))
  })

  const listening: Script = {
    ...modernScript,
    'server/discover': (exchange) => discovered(exchange, { capabilities: { tools: { listChanged: true } } }),
  }

  it('is asked for that stream again when it ends, and its list is read again then', async (t) => {
    const streams: Exchange[] = []
    const tools = [tool('a')]
    const { upstream } = await scripted(t, {
      ...listening,
      'tools/list': (exchange) => result(exchange, { tools, resultType: 'complete', ttlMs: 3_600_000 }),
      'subscriptions/listen': (exchange) => {
        streams.push(exchange)
        acknowledge(exchange)
      },
    })
    assert.equal(streams.length, 1)
    assert.deepEqual(streams[0]?.message.params?.['notifications'], { toolsListChanged: true })
    assert.equal(streams[0]?.headers['mcp-method'], 'subscriptions/listen')
    tools.push(tool('b'))
    streams[0]?.res.end()
    await until(() => streams.length === 2)
    await until(() => upstream.items.tools.length === 2)
    assert.equal(upstream.state.restarts, 0)
  })

  for (const [what, refuse] of [
    ['does not know the method', (exchange: Exchange) => error(exchange, -32_601, 404)],
    ['does not announce what was asked for', (exchange: Exchange) => acknowledge(exchange, {}).end()],
  ] as const) {
    it(`is asked for that stream once when it ${what}`, async (t) => {
      const { server, upstream } = await scripted(t, { ...listening, 'subscriptions/listen': refuse })
      await upstream.call(call('t'))
      await runFor(1_500)
      assert.equal(server.sent('subscriptions/listen').length, 1)
      assert.equal(upstream.state.status, 'ready')
    })
  }

  it('is asked for that stream again when it had no room', async (t) => {
    let asked = 0
    const { upstream } = await scripted(t, {
      ...listening,
      'subscriptions/listen': (exchange) => (asked++ === 0 ? error(exchange, -32_603) : acknowledge(exchange)),
    })
    await until(() => asked === 2)
    assert.equal(upstream.state.status, 'ready')
  })

  it('is asked for that stream once when it does not declare that it announces', async (t) => {
    const refused = (exchange: Exchange) => error(exchange, -32_603)
    const { server, upstream } = await scripted(t, { ...modernScript, 'subscriptions/listen': refused })
    await upstream.call(call('t'))
    await runFor(600)
    assert.equal(server.sent('subscriptions/listen').length, 1)
  })

  it('may announce what it has not declared', async (t) => {
    let announce = () => {}
    const tools = [tool('a')]
    const { upstream } = await scripted(t, {
      ...modernScript,
      'tools/list': (exchange) => result(exchange, { tools, resultType: 'complete', ttlMs: 3_600_000 }),
      'subscriptions/listen': ({ res }) => {
        const send = events(res)
        send({
          method: 'notifications/subscriptions/acknowledged',
          params: { notifications: { toolsListChanged: true } },
        })
        announce = () => send({ method: 'notifications/tools/list_changed' })
      },
    })
    tools.push(tool('b'))
    announce()
    await until(() => upstream.items.tools.length === 2, 500)
  })

  it('is seen to change within 500 ms, again and again', async (t) => {
    const { server, upstream } = await modern(t)
    for (const name of ['echo', 'add', 'slow', 'fail']) {
      // Sooner, it would count as the consequence of being read.
      await runFor(150)
      server.remove(name)
      await until(() => upstream.items.tools.every((listed) => listed.name !== name), 500)
    }
  })

  it('must give results their type', async (t) => {
    const { upstream } = await scripted(t, { ...modernScript, 'tools/call': (exchange) => result(exchange, {}) })
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_protocol', message: /unknown type/ })
  })
})

describe('era: auto', () => {
  const legacyAnswers: readonly (readonly [string, (exchange: Exchange) => void])[] = [
    ['404 and "method not found"', (exchange) => error(exchange, -32_601, 404)],
    ['400 and the code of SDKs', (exchange) => error(exchange, -32_000, 400)],
    ['400 and a header mismatch, which is no sign of an era', (exchange) => error(exchange, -32_020, 400)],
    ['404 and no JSON', status(404, 'Not Found')],
    ['405', status(405)],
    ['"method not found" with 200', (exchange) => error(exchange, -32_601)],
    ['no capabilities', (exchange) => discovered(exchange, { capabilities: undefined })],
    ['earlier revisions only', (exchange) => discovered(exchange, { supportedVersions: ['2025-11-25'] })],
    ['that it supports earlier ones', (exchange) => error(exchange, -32_022, 400, { supported: ['2025-11-25'] })],
  ]
  for (const [what, answer] of legacyAnswers) {
    it(`falls back to initialize when the server answers ${what}`, async (t) => {
      const { server, upstream } = await scripted(t, { 'server/discover': answer })
      assert.equal(upstream.state.era, 'legacy')
      assert.equal(server.sent('initialize').length, 1)
      await upstream.call(call('t'))
    })
  }

  const failures: readonly (readonly [string, (exchange: Exchange) => void, RegExp])[] = [
    ['401', status(401), /^asked for other credentials \(HTTP 401\)$/],
    ['403', (exchange) => error(exchange, -32_000, 403), /^refused access \(HTTP 403\)$/],
    ['500', (exchange) => error(exchange, -32_603, 500), /^answered HTTP 500/],
    [
      'a page',
      status(200, '<html>', { 'content-type': 'text/html' }),
      /^answered something that is not MCP: "<html>"$/,
    ],
    ['no JSON-RPC', ({ res }) => json(res, { ok: true }), /^answered something that is not MCP: /],
    [
      'a redirect',
      status(307, '', { location: 'http://127.0.0.1:1/' }),
      /^redirects to http:\/\/127\.0\.0\.1:1\/; write that as "url"$/,
    ],
    [
      'a later revision',
      (exchange) => discovered(exchange, { supportedVersions: ['2027-01-01'] }),
      /^speaks MCP 2027-01-01;/,
    ],
    [
      'that it supports a later one',
      (exchange) => error(exchange, -32_022, 400, { supported: ['2027-01-01'] }),
      /^speaks MCP 2027/,
    ],
    ['nothing', () => undefined, /^did not answer in \d+(\.\d)? s$/],
  ]
  for (const [what, answer, reason] of failures) {
    it(`does not fall back when the server answers ${what}`, async (t) => {
      const given = what === 'nothing' ? { startTimeoutMs: 300 } : {}
      const { server, upstream } = await scripted(t, { 'server/discover': answer }, given)
      assert.equal(upstream.state.status, 'down')
      assert.match(upstream.state.reason ?? '', reason)
      assert.equal(server.sent('initialize').length, 0)
    })
  }

  it('does not probe a configured era', async (t) => {
    const { server, upstream } = await scripted(t, {}, { era: 'legacy' })
    assert.equal(upstream.state.status, 'ready')
    assert.equal(server.sent('server/discover').length, 0)
    const { server: other, upstream: refused } = await scripted(t, {}, { era: 'modern' })
    assert.equal(refused.state.reason, 'does not speak MCP 2026-07-28')
    assert.equal(other.sent('initialize').length, 0)
  })
})

describe('an upstream of an earlier revision', () => {
  it('gets the session, the revision and the configured headers, which cannot stand in for its own', async (t) => {
    const headers = { Authorization: 'Bearer x', 'Mcp-Session-Id': 'forged', HOST: 'elsewhere', Accept: 'text/html' }
    const { server, upstream } = await scripted(t, {}, { headers })
    await upstream.call(call('t'))
    const last = server.seen.at(-1)?.headers ?? {}
    assert.equal(last['mcp-session-id'], 's1')
    assert.equal(last['mcp-protocol-version'], '2025-11-25')
    assert.equal(last['authorization'], 'Bearer x')
    assert.equal(last['accept'], 'application/json, text/event-stream')
    assert.match(last['host'] ?? '', /^127\.0\.0\.1:/)
    assert.equal(server.sent('notifications/initialized').length, 1)
  })

  it('receives no client capabilities and only requests about tools', async (t) => {
    const { server } = await scripted(t, {})
    assert.deepEqual(server.sent('initialize')[0]?.params?.['capabilities'], {})
    const methods = new Set(server.seen.map(({ message }) => message.method))
    assert.deepEqual([...methods], ['server/discover', 'initialize', 'notifications/initialized', 'tools/list'])
  })

  for (const [what, lost] of [
    ['404', status(404)],
    ['400 and the code of SDKs', (exchange: Exchange) => error(exchange, -32_000, 400)],
    ['400 and no JSON', status(400, 'no session')],
  ] as const) {
    it(`is shaken hands with again when it has lost the session (${what}), and runs each call once`, async (t) => {
      let session = 's1'
      let ran = 0
      const { server, upstream } = await scripted(t, {
        initialize: (exchange) => initialized(exchange, { session }),
        'tools/call': inSession(
          () => session,
          lost,
          (exchange) => result(exchange, { content: [], ran: ++ran }),
        ),
      })
      session = 's2'
      await Promise.all([upstream.call(call('t')), upstream.call(call('t')), upstream.call(call('t'))])
      assert.equal(ran, 3)
      assert.equal(server.sent('initialize').length, 2, 'once for all')
      assert.equal(upstream.state.restarts, 0)
    })
  }

  it('may be another server after it has lost the session, and its new name is known', async (t) => {
    let session = 's1'
    const { upstream } = await scripted(t, {
      initialize: (exchange) =>
        result(
          exchange,
          {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'scripted', version: session },
          },
          { 'mcp-session-id': session },
        ),
      'tools/call': inSession(
        () => session,
        status(404),
        (exchange) => result(exchange, { content: [] }),
      ),
    })
    assert.equal(upstream.state.serverInfo?.version, 's1')
    session = 's2'
    await upstream.call(call('t'))
    assert.equal(upstream.state.serverInfo?.version, 's2')
  })

  it('does not receive a request twice that it refused in its session', async (t) => {
    const { server, upstream } = await scripted(t, { 'tools/call': (exchange) => error(exchange, -32_602, 400) })
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_rpc' })
    assert.equal(server.sent('tools/call').length, 1)
  })

  it('is asked twice, not for ever, when it loses every session', async (t) => {
    const { server, upstream } = await scripted(t, { 'tools/call': status(404) })
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_down' })
    assert.equal(server.sent('tools/call').length, 2)
  })

  it('receives requests without a session if it returns none', async (t) => {
    const { server, upstream } = await scripted(t, { initialize: (exchange) => initialized(exchange, { session: '' }) })
    await upstream.call(call('t'))
    assert.equal(server.seen.at(-1)?.headers['mcp-session-id'], undefined)
  })

  it('is notified when a caller aborts', async (t) => {
    const { server, upstream } = await scripted(t, { 'tools/call': () => undefined })
    const leaving = new AbortController()
    const hanging = upstream.call({ ...call('t'), signal: leaving.signal })
    const sent = await until(() => server.sent('tools/call')[0])
    leaving.abort()
    await assert.rejects(hanging, { code: 'aborted' })
    const cancelled = await until(() => server.sent('notifications/cancelled')[0])
    assert.equal(cancelled.params?.['requestId'], sent.id)
  })

  it('may answer in an event stream, where its requests are refused', async (t) => {
    const { server, upstream } = await scripted(t, {
      'tools/call': ({ message, res }) => {
        const send = events(res)
        send({ id: 'q1', method: 'elicitation/create', params: {} })
        send({ id: message.id, result: { content: [], streamed: true } })
      },
    })
    assert.deepEqual(await upstream.call(call('t')), { content: [], streamed: true })
    const { message } = await until(() => server.seen.find((request) => request.message.error !== undefined))
    assert.deepEqual(message, {
      jsonrpc: '2.0',
      id: 'q1',
      error: { code: -32_601, message: 'elicitation/create is not supported' },
    })
  })

  it('may break off an event stream and go on in another', async (t) => {
    let asked: unknown
    const { server, upstream } = await scripted(t, {
      'tools/call': ({ message, res }) => {
        asked = message.id
        res.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: e1\nretry: 100\ndata:\n\n')
      },
      GET: ({ headers, res }) => {
        assert.equal(headers['last-event-id'], 'e1')
        events(res)({ id: asked, result: { content: [], resumed: true } })
        res.end()
      },
    })
    assert.deepEqual(await upstream.call(call('t')), { content: [], resumed: true })
    assert.equal(server.sent('tools/call').length, 1)
  })

  it('may say on a stream of its own that its tools changed', async (t) => {
    let send: ReturnType<typeof events> | undefined
    const tools = [tool('a')]
    const { upstream } = await scripted(t, {
      initialize: (exchange) => initialized(exchange, { listChanged: true }),
      'tools/list': (exchange) => result(exchange, { tools }),
      GET: ({ res }) => (send = events(res)),
    })
    const listening = await until(() => send)
    tools.push(tool('b'))
    listening({ method: 'notifications/tools/list_changed' })
    await until(() => upstream.items.tools.length === 2)
  })

  it('keeps its session when it answers 404 to the stream for announcements alone', async (t) => {
    const { server, upstream } = await scripted(t, {
      initialize: (exchange) => initialized(exchange, { listChanged: true }),
      ping: (exchange) => result(exchange, {}),
      GET: status(404),
    })
    await until(() => server.sent('ping').length > 0)
    await upstream.call(call('t'))
    assert.equal(server.sent('initialize').length, 1)
    assert.equal(server.seen.filter(({ httpMethod }) => httpMethod === 'GET').length, 1)
  })

  it('gets a new session, and a stream in it, when the old one is gone at the stream', async (t) => {
    let session = 's1'
    let openStream: (() => void) | undefined
    const { server, upstream } = await scripted(t, {
      initialize: (exchange) => initialized(exchange, { session, listChanged: true }),
      ping: inSession(
        () => session,
        status(404),
        (exchange) => result(exchange, {}),
      ),
      'tools/list': inSession(
        () => session,
        status(404),
        (exchange) => result(exchange, { tools: [tool('t')] }),
      ),
      GET: inSession(
        () => session,
        status(404),
        ({ res }) => {
          const current = session
          events(res)
          openStream = () => {
            session = `${current}+`
            res.end()
          }
        },
      ),
    })
    const forget = await until(() => openStream)
    openStream = undefined
    forget()
    await until(() => openStream)
    assert.equal(server.sent('initialize').length, 2)
    assert.equal(upstream.state.restarts, 0)
  })

  it('is down when it forgets each session at once', async (t) => {
    let given = 0
    let lists = 0
    const { server, upstream } = await scripted(t, {
      initialize: (exchange) => initialized(exchange, { session: `s${++given}`, listChanged: true }),
      'tools/list': (exchange) => (++lists === 1 ? result(exchange, { tools: [tool('t')] }) : status(404)(exchange)),
      ping: status(404),
      GET: status(404),
    })
    await until(() => upstream.state.status === 'down')
    assert.equal(upstream.state.reason, 'does not know the session that it gave')
    assert.equal(server.sent('initialize').length, 2)
  })

  it('receives a DELETE when it is closed', async (t) => {
    const { server, upstream } = await scripted(t, {})
    await upstream.close()
    const last = server.seen.at(-1)
    assert.deepEqual([last?.httpMethod, last?.headers['mcp-session-id']], ['DELETE', 's1'])
  })

  it('cannot hold up closing', async (t) => {
    const { upstream } = await scripted(t, { DELETE: () => undefined, 'tools/call': () => undefined })
    const hanging = assert.rejects(upstream.call(call('t')), { code: 'upstream_down' })
    const late = runFor(2_000).then(() => 'late')
    assert.notEqual(await Promise.race([upstream.close(), late]), 'late')
    await hanging
  })
})

describe('an upstream over HTTP', () => {
  for (const [code, httpStatus] of [
    [-32_020, 400],
    [-32_021, 400],
    [-32_022, 400],
    [-32_042, 200],
    [-32_601, 404],
    [-32_602, 200],
    [-32_603, 500],
    [-32_603, 503],
    [-31_999, 200],
    [7, 422],
  ] as const) {
    it(`keeps the error ${code} of a call with its data, also with HTTP ${httpStatus}`, async (t) => {
      const { upstream } = await scripted(t, {
        ...modernScript,
        'tools/call': (exchange) => error(exchange, code, httpStatus, { of: 'the server' }),
      })
      await assert.rejects(upstream.call(call('t')), {
        code: 'upstream_rpc',
        rpc: { code, message: 'scripted', data: { of: 'the server' } },
      })
    })
  }

  for (const [era, ttlMs, script] of [
    ['legacy', 60_000, {}],
    ['modern', 5_000, modernScript],
  ] as const) {
    it(`is read again when its list is stale, although it announced no change (${era})`, async (t) => {
      const tools = [tool('a')]
      const list = era === 'modern' ? { resultType: 'complete', ttlMs } : {}
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const { upstream } = await scripted(t, {
        ...script,
        'tools/list': (exchange) => result(exchange, { tools, ...list }),
      })
      assert.equal(upstream.items.tools.length, 1)
      tools.push(tool('b'))
      t.mock.timers.tick(ttlMs - 1)
      await upstream.call(call('a'))
      assert.equal(upstream.items.tools.length, 1)
      t.mock.timers.tick(1)
      await until(() => upstream.items.tools.length === 2)
    })
  }

  it('uses no connection again that brought the answer to another request', async (t) => {
    const sockets: unknown[] = []
    const { upstream } = await scripted(t, {
      ...modernScript,
      'tools/call': (exchange) => {
        sockets.push(exchange.res.socket)
        if (sockets.length > 1) return result(exchange, { resultType: 'complete', content: [] })
        json(exchange.res, { jsonrpc: '2.0', id: 99, result: {} })
      },
    })
    await assert.rejects(upstream.call(call('a')), /another request$/)
    await upstream.call(call('a'))
    assert.equal(new Set(sockets).size, 2)
  })

  const answers: readonly (readonly [string, (exchange: Exchange) => void, string, RegExp])[] = [
    ['a page', status(200, '<html>', { 'content-type': 'text/html' }), 'upstream_protocol', /not MCP: "<html>"/],
    [
      'another request',
      ({ res }) => json(res, { jsonrpc: '2.0', id: 99, result: { secret: 1 } }),
      'upstream_protocol',
      /answered another request$/,
    ],
    ['no JSON', status(200, '{', { 'content-type': 'application/json' }), 'upstream_protocol', /not MCP: "\{"/],
    ['no result', (exchange) => result(exchange, { content: 'text' }), 'upstream_protocol', /no result of tools\/call/],
    ['too much', (exchange) => result(exchange, { x: 'x'.repeat(17 * 2 ** 20) }), 'upstream_too_large', /16 MiB/],
    ['too much in an event', tooMuchInAnEvent, 'upstream_too_large', /16 MiB/],
    ['too deep JSON', tooDeep(1_000), 'upstream_protocol', /nested more than 64/],
    ['far too deep JSON', tooDeep(4_000_000), 'upstream_too_large', /nested more than 64/],
    [
      'a stream without the answer',
      ({ res }) => void (events(res), res.end()),
      'upstream_protocol',
      /ended its event stream/,
    ],
    ['a redirect', status(302, '', { location: 'http://127.0.0.1:1/' }), 'upstream_protocol', /redirects to http/],
    ['a long fault', status(500, 'x'.repeat(1_000_000)), 'upstream_protocol', /HTTP 500 \(x+…\)/],
    [
      'the error of another request',
      status(400, '{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"secret"}}'),
      'upstream_protocol',
      /HTTP 400$/,
    ],
    ['an empty fault', status(503), 'upstream_protocol', /HTTP 503/],
    ['a broken connection', ({ res }) => res.destroy(), 'upstream_down', /is not running/],
  ]
  for (const [what, answer, code, message] of answers) {
    it(`may answer ${what} to one call and serve the next`, async (t) => {
      let bad = true
      const script: Script = {
        'tools/call': (exchange) => (bad ? answer(exchange) : result(exchange, { content: [] })),
      }
      const { upstream } = await scripted(t, script)
      await assert.rejects(upstream.call(call('t')), { code, message })
      bad = false
      await upstream.call(call('t'))
      assert.equal(upstream.state.status, 'ready')
    })
  }

  it('may answer nothing to one call and serve the next', async (t) => {
    let bad = true
    const { server, upstream } = await scripted(t, {
      'tools/call': (exchange) => (bad ? undefined : result(exchange, { content: [] })),
    })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const late = assert.rejects(upstream.call(call('t')), { code: 'upstream_timeout', message: /did not answer in/ })
    await until(() => server.sent('tools/call').length === 1)
    t.mock.timers.tick(10_000)
    await late
    t.mock.timers.reset()
    bad = false
    await upstream.call(call('t'))
    assert.equal(upstream.state.status, 'ready')
  })

  it('goes down when it cannot be reached, and comes back', async (t) => {
    const port = await findFreePort()
    const upstream = testUpstream(t, serverConfig({ url: `http://127.0.0.1:${port}/mcp` }))
    await upstream.start()
    assert.equal(upstream.state.reason, 'refused the connection: nothing listens there')
    const server = await startScripted(t, {}, port)
    await until(() => upstream.state.status === 'ready')
    await server.close()
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_down' })
    await until(() => upstream.state.status === 'down')
    assert.equal(upstream.items.tools.length, 1, 'its tools stay known')
  })

  it('goes down when a proxy answers that it is gone', async (t) => {
    let gone = false
    const script: Script = { ping: (exchange) => (gone ? status(502)(exchange) : result(exchange, {})) }
    const { upstream } = await scripted(t, { ...script, 'tools/call': status(502) })
    gone = true
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_protocol' })
    await until(() => upstream.state.status === 'down')
    assert.equal(upstream.state.reason, 'answered HTTP 502')
  })

  it('goes down when it does not take the credentials any more', async (t) => {
    const { upstream } = await scripted(t, { ping: status(401), 'tools/call': status(401) })
    await assert.rejects(upstream.call(call('t')), { code: 'upstream_protocol' })
    await until(() => upstream.state.status === 'down')
    assert.equal(upstream.state.reason, 'asked for other credentials (HTTP 401)')
  })

  it('names a bad address', async (t) => {
    for (const [url, reason] of [
      ['ftp://x/', /not one of http or https/],
      ['http://no-such-host.invalid/', /was not found|cannot be looked up/],
    ] as const) {
      const upstream = testUpstream(t, serverConfig({ url }), never)
      await upstream.start()
      assert.match(upstream.state.reason ?? '', reason)
    }
  })
})

function tooDeep(depth: number): (exchange: Exchange) => void {
  return ({ message, res }) => {
    const text = `{"jsonrpc":"2.0","id":${message.id},"result":{"x":${'['.repeat(depth)}${']'.repeat(depth)}}}`
    res.writeHead(200, { 'content-type': 'application/json' }).end(text)
  }
}

function tooMuchInAnEvent({ message, res }: Exchange): void {
  events(res)({ id: message.id, result: { x: 'x'.repeat(17 * 2 ** 20) } })
}
