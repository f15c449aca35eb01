import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import {
  discovered,
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
const never = { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } }
const ANSWER = { content: [{ type: 'text', text: 'größer' }] }
const MODERN: Script = {
  'server/discover': (exchange) => discovered(exchange),
  'tools/list': (exchange) => result(exchange, { tools: [tool('t')], resultType: 'complete', ttlMs: 0 }),
}

async function upstreamOf(t: TestContext, script: Script, given: Partial<ServerConfig> = {}) {
  const server = await startScripted(t, script)
  const upstream = testUpstream(t, serverConfig({ name: 'remote', url: server.url, ...given }), never)
  await upstream.start()
  return { server, upstream }
}

/** The text of an answer, as a server of either era writes it. */
const textOf = ({ message }: Exchange, id: unknown = message.id): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { ...ANSWER, resultType: 'complete' } })

const event = (exchange: Exchange, id?: unknown): string => `data: ${textOf(exchange, id)}\n\n`

type Write = (exchange: Exchange) => void

/** Sends a body with these headers. */
const send =
  (body: (exchange: Exchange) => string | Buffer, headers: Record<string, string>, code = 200): Write =>
  (exchange) => {
    exchange.res.writeHead(code, headers).end(body(exchange))
  }

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS = { 'content-type': 'text/event-stream' }
const coded = (coding: string, body: (text: string) => Buffer): Write =>
  send((exchange) => body(textOf(exchange)), { ...JSON_TYPE, 'content-encoding': coding })

const WRITTEN: readonly (readonly [string, Write])[] = [
  ['with gzip', coded('gzip', gzipSync)],
  ['with gzip in upper case', coded('GZIP', gzipSync)],
  ['with x-gzip', coded('x-gzip', gzipSync)],
  ['with deflate', coded('deflate', deflateSync)],
  ['with deflate without its head', coded('deflate', deflateRawSync)],
  ['with br', coded('br', brotliCompressSync)],
  ['with zstd', coded('zstd', zstdCompressSync)],
  ['with identity', coded('identity', Buffer.from)],
  ['with gzip that lacks its checksum', coded('gzip', (text) => gzipSync(text).subarray(0, -8))],
  ['as events with gzip', send((exchange) => gzipSync(event(exchange)), { ...EVENTS, 'content-encoding': 'gzip' })],
  ['with 201', send(textOf, JSON_TYPE, 201)],
  ['with 202', send(textOf, JSON_TYPE, 202)],
  ['as events with 201', send(event, EVENTS, 201)],
  ['with a byte order mark', send((exchange) => `\uFEFF${textOf(exchange)}`, JSON_TYPE)],
  ['as events with a byte order mark', send((exchange) => `\uFEFF${event(exchange)}`, EVENTS)],
  ['as events with CR alone', send((exchange) => event(exchange).replaceAll('\n', '\r'), EVENTS)],
  ['as events with CRLF', send((exchange) => event(exchange).replaceAll('\n', '\r\n'), EVENTS)],
  ['after comments and other fields', send((exchange) => `:\n:x\nretry:1\nx: y\nid\n\n${event(exchange)}`, EVENTS)],
  ['as events without a space', send((exchange) => event(exchange).replace('data: ', 'data:'), EVENTS)],
  ['with its id as text', send((exchange) => textOf(exchange, String(exchange.message.id)), JSON_TYPE)],
  ['as events with its id as text', send((exchange) => event(exchange, String(exchange.message.id)), EVENTS)],
  ['with a parameter of the type', send(textOf, { 'content-type': 'application/json; charset=utf-8' })],
  ['with the type in upper case', send(textOf, { 'content-type': 'APPLICATION/JSON;CHARSET=UTF-8' })],
  ['as events with a parameter', send(event, { 'content-type': 'Text/Event-Stream ; charset=utf-8' })],
  ['without a type', send(textOf, {})],
  ['as text', send(textOf, { 'content-type': 'text/plain' })],
  ['as events without a type', send(event, {})],
  ['as events without an empty line at the end', send((exchange) => event(exchange).trimEnd(), EVENTS)],
  ['as a batch', send((exchange) => `[${textOf(exchange)}]`, JSON_TYPE)],
  [
    'in chunks with trailers',
    ({ res, ...exchange }) => {
      res.writeHead(200, { ...JSON_TYPE, trailer: 'x-checksum' })
      res.write(textOf({ res, ...exchange }))
      res.addTrailers({ 'x-checksum': '1' })
      res.end()
    },
  ],
]

describe('an answer over HTTP', () => {
  for (const [era, script] of [
    ['legacy', {}],
    ['modern', MODERN],
  ] as const)
    for (const [what, write] of WRITTEN)
      it(`may be written ${what} (${era})`, async (t) => {
        const { upstream } = await upstreamOf(t, { ...script, 'tools/call': write })
        assert.deepEqual((await upstream.call(call)).content, ANSWER.content)
      })

  it('may come in parts of a compressed stream, each as soon as it is sent', async (t) => {
    const steps: number[] = []
    let goOn: (() => void) | undefined
    const { upstream } = await upstreamOf(t, {
      'tools/call': (exchange) => {
        const { message, res } = exchange
        const zipped = process.getBuiltinModule('node:zlib').createGzip()
        res.writeHead(200, { ...EVENTS, 'content-encoding': 'gzip' })
        zipped.pipe(res)
        const token = String(message.id)
        const progress = { method: 'notifications/progress', params: { progressToken: token, progress: 1 } }
        zipped.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...progress })}\n\n`)
        zipped.flush()
        goOn = () => zipped.end(event(exchange))
      },
    })
    const onProgress = ({ progress }: { readonly progress: number }) => {
      steps.push(progress)
      goOn?.()
    }
    assert.deepEqual((await upstream.call({ ...call, onProgress })).content, ANSWER.content)
    assert.deepEqual(steps, [1])
  })

  const MIB = 2 ** 20
  for (const [what, zip] of [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ] as const)
    it(`is bounded by what it becomes, not by what is sent (${what})`, async (t) => {
      const bomb = zip(Buffer.alloc(64 * MIB, ' '))
      const seen: string[] = []
      const { upstream } = await upstreamOf(t, {
        'tools/call': ({ res }) => {
          res.writeHead(200, { ...JSON_TYPE, 'content-encoding': what }).end(bomb)
          void once(res, 'close').then(() => seen.push('closed'))
        },
      })
      await assert.rejects(upstream.call(call), { code: 'upstream_too_large', message: /16 MiB/ })
    })

  it('is bounded as an event, and as an error, after it was decoded', async (t) => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('data: '), Buffer.alloc(20 * MIB, 'x')]))
    const headers = { 'content-encoding': 'gzip' }
    let answer: Write = ({ res }) => res.writeHead(200, { ...EVENTS, ...headers }).end(bomb)
    const { upstream } = await upstreamOf(t, { 'tools/call': (exchange) => answer(exchange) })
    await assert.rejects(upstream.call(call), { code: 'upstream_too_large' })
    // Only its beginning is read, so that its end need not come.
    answer = ({ res }) => void res.writeHead(422, headers).write(bomb.subarray(0, -8))
    await assert.rejects(upstream.call(call), { code: 'upstream_protocol', message: /HTTP 422 \(data/ })
  })

  for (const [what, headers, body, reason] of [
    ['an unknown coding', { 'content-encoding': 'compress' }, '{}', /content coding "compress", which is unknown$/],
    ['two codings', { 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync('{}')), /"gzip, gzip", which is unknown$/],
    ['bytes of another coding', { 'content-encoding': 'gzip' }, '{"jsonrpc":"2.0"}', /a body that is not gzip$/],
    ['nothing', {}, '', /answered nothing \(HTTP 200\)$/],
  ] as const)
    it(`may not be ${what}`, async (t) => {
      const answer = send(() => body as string, { ...JSON_TYPE, ...headers })
      const { upstream } = await upstreamOf(t, { 'tools/call': answer })
      await assert.rejects(upstream.call(call), { code: 'upstream_protocol', message: reason })
      assert.equal(upstream.state.status, 'ready')
    })

  it('with the id of another request as text goes to nobody', async (t) => {
    const sockets: unknown[] = []
    const { upstream } = await upstreamOf(t, {
      'tools/call': (exchange) => {
        sockets.push(exchange.res.socket)
        send(() => textOf(exchange, sockets.length > 1 ? exchange.message.id : '99'), JSON_TYPE)(exchange)
      },
    })
    await assert.rejects(upstream.call(call), /another request$/)
    await upstream.call(call)
    assert.equal(new Set(sockets).size, 2)
  })

  for (const [what, code] of [
    ['422', 422],
    ['500', 500],
  ] as const)
    it(`may be an error in an event with HTTP ${what}`, async (t) => {
      const failed = ({ message }: Exchange) =>
        `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: 7, message: 'no' } })}\n\n`
      const { upstream } = await upstreamOf(t, { 'tools/call': send(failed, EVENTS, code) })
      await assert.rejects(upstream.call(call), { code: 'upstream_rpc', rpc: { code: 7, message: 'no' } })
    })
})

describe('an error over HTTP', () => {
  for (const id of [null, 'server-error', undefined])
    for (const [what, write] of [
      ['JSON', send],
      ['an event', (body: (exchange: Exchange) => string) => send((exchange) => `data: ${body(exchange)}\n\n`, EVENTS)],
    ] as const)
      it(`may have the id ${JSON.stringify(id)} in ${what}`, async (t) => {
        const failed = () => JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_700, message: 'Parse error' } })
        const { upstream } = await upstreamOf(t, { 'tools/call': write(failed, JSON_TYPE) })
        await assert.rejects(upstream.call(call), { rpc: { code: -32_700, message: 'Parse error' } })
      })
})

describe('a session id over HTTP', () => {
  it('may be empty, which is none', async (t) => {
    const { server, upstream } = await upstreamOf(t, {
      initialize: (exchange) => {
        exchange.res.setHeader('mcp-session-id', '')
        initialized(exchange, { session: '' })
      },
    })
    await upstream.call(call)
    assert.equal(server.seen.at(-1)?.headers['mcp-session-id'], undefined)
  })

  it('may be long, such as a token', async (t) => {
    const session = 'x'.repeat(4096)
    const { server, upstream } = await upstreamOf(t, {
      initialize: (exchange) => initialized(exchange, { session }),
    })
    await upstream.call(call)
    assert.equal(server.seen.at(-1)?.headers['mcp-session-id'], session)
  })
})

describe('a notification over HTTP', () => {
  const answers: readonly (readonly [string, Write])[] = [
    ['200 and nothing', status(200)],
    ['204', status(204)],
    ['201', status(201)],
    ['JSON', ({ res }) => json(res, {})],
    ['null', ({ res }) => json(res, null)],
    ['an error of JSON-RPC with 400', ({ res }) => json(res, { jsonrpc: '2.0', id: null, error: { code: 1 } }, 400)],
    ['404', status(404)],
    ['405', status(405)],
    ['501', status(501)],
    ['an event stream that never ends', ({ res }) => res.writeHead(200, EVENTS).flushHeaders()],
  ]
  for (const [what, answer] of answers)
    it(`may be answered with ${what}`, async (t) => {
      const { upstream } = await upstreamOf(t, { 'notifications/initialized': answer })
      assert.equal(upstream.state.reason, undefined)
      await upstream.call(call)
    })
})

describe('a server without ping', () => {
  for (const [what, answer] of [
    ['404', status(404, 'Not Found')],
    ['400', status(400)],
    ['405', status(405)],
    ['501', status(501)],
    [
      'an unknown method',
      ({ message, res }: Exchange) => json(res, { jsonrpc: '2.0', id: message.id, error: { code: -32_601 } }),
    ],
  ] as const)
    it(`stays up, in its session, when one connection broke (${what})`, async (t) => {
      let breaks = true
      const { server, upstream } = await upstreamOf(t, {
        initialize: (exchange) => initialized(exchange),
        ping: answer,
        'tools/call': (exchange) => (breaks ? exchange.res.destroy() : result(exchange, ANSWER)),
      })
      await assert.rejects(upstream.call(call), { code: 'upstream_down' })
      breaks = false
      await until(() => server.sent('ping').length > 0)
      if (what !== 'an unknown method') await until(() => server.sent('tools/list').length > 1)
      await upstream.call(call)
      assert.equal(server.sent('initialize').length, 1)
      assert.equal(upstream.state.restarts, 0)
    })
})
