import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  discovered,
  result,
  type Script,
  type ScriptedServer,
  startScripted,
  status,
  tool,
} from '../../../fixtures/scripted-http.ts'
import { serverConfig, testUpstream } from '../../../fixtures/servers.ts'
import { AUTHORITY, SERVER } from '../../../fixtures/test-certificates.ts'
import { startProxy } from '../../../fixtures/test-proxy.ts'
import type { ServerConfig } from '../../config/config.ts'
import { proxiesOf } from '../../util/proxy-rules.ts'
import { findFreePort } from './open.ts'

const { signal } = new AbortController()
const call = { method: 'tools/call' as const, params: { name: 't', arguments: {} }, caller: {}, signal }
const never = { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } }
const MODERN: Script = {
  'server/discover': (exchange) => discovered(exchange),
  'tools/list': (exchange) => result(exchange, { tools: [tool('t')], resultType: 'complete', ttlMs: 0 }),
  'tools/call': (exchange) => result(exchange, { content: [], resultType: 'complete' }),
}
const HTTPS = 'https://mcp.example.com/mcp'
const PLAIN = 'http://mcp.example.com/mcp'

const startTls = (t: TestContext, script: Script = {}): Promise<ScriptedServer> =>
  startScripted(t, script, 0, undefined, SERVER)

async function upstreamOf(t: TestContext, given: Partial<ServerConfig>) {
  const upstream = testUpstream(t, serverConfig({ name: 'remote', ...given }), never)
  await upstream.start()
  return upstream
}

/** The rules of an environment with one proxy for all. */
function through(url: string, except?: string) {
  const proxy = proxiesOf({ ALL_PROXY: url, ...(except !== undefined && { NO_PROXY: except }) })
  return proxy && { proxy }
}

describe('a server behind a proxy', () => {
  for (const [era, script] of [
    ['legacy', {}],
    ['modern', MODERN],
  ] as const) {
    it(`is reached with TLS through a tunnel, and only the proxy knows its name (${era})`, async (t) => {
      const server = await startTls(t, script)
      const proxy = await startProxy(t, { hosts: { 'mcp.example.com:443': server.port } })
      const upstream = await upstreamOf(t, { url: HTTPS, ca: AUTHORITY, ...through(proxy.url) })
      assert.equal(upstream.state.reason, undefined)
      await upstream.call(call)
      assert.deepEqual(new Set(proxy.asked), new Set(['CONNECT mcp.example.com:443']))
      assert.equal(server.seen.at(-1)?.headers.host, 'mcp.example.com')
    })

    it(`is reached without TLS as a whole URL (${era})`, async (t) => {
      const server = await startScripted(t, script)
      const proxy = await startProxy(t, { hosts: { 'mcp.example.com:80': server.port } })
      const upstream = await upstreamOf(t, { url: PLAIN, ...through(proxy.url) })
      await upstream.call(call)
      assert.ok(proxy.asked.length >= 3)
      for (const line of proxy.asked) assert.match(line, /^(?:POST|GET) http:\/\/mcp\.example\.com\/mcp$/)
      assert.equal(server.seen.at(-1)?.headers.host, 'mcp.example.com')
    })
  }

  for (const [url, isTls] of [
    [HTTPS, true],
    ['http://not-in-the-certificate.example.com/mcp', false],
  ] as const)
    it(`is reached through a proxy that speaks TLS itself (${url})`, async (t) => {
      const server = isTls ? await startTls(t) : await startScripted(t, {})
      const proxy = await startProxy(t, {
        tls: true,
        hosts: { [`${new URL(url).hostname}:${isTls ? 443 : 80}`]: server.port },
      })
      const upstream = await upstreamOf(t, { url, ca: AUTHORITY, ...through(proxy.url) })
      assert.equal(upstream.state.reason, undefined)
      await upstream.call(call)
    })

  for (const [url, isTls] of [
    [HTTPS, true],
    [PLAIN, false],
  ] as const)
    it(`gets no login of the proxy, which the proxy gets (${url})`, async (t) => {
      const server = isTls ? await startTls(t) : await startScripted(t, {})
      const hosts = { [`mcp.example.com:${isTls ? 443 : 80}`]: server.port }
      const proxy = await startProxy(t, { hosts, login: 'vera:p@ss' })
      const upstream = await upstreamOf(t, {
        url,
        ca: AUTHORITY,
        ...through(proxy.url.replace('//', '//vera:p%40ss@')),
      })
      await upstream.call(call)
      assert.deepEqual(new Set(proxy.logins), new Set(['vera:p@ss']))
      assert.doesNotMatch(JSON.stringify(server.seen), /proxy-authorization/)
    })

  it('is reached directly where NO_PROXY says so, and on this machine', async (t) => {
    const server = await startScripted(t, {})
    const proxy = await startProxy(t, { hosts: {} })
    const upstream = await upstreamOf(t, { url: server.url, ...through(proxy.url) })
    await upstream.call(call)
    assert.equal(proxy.asked.length, 0)
    const excepted = await upstreamOf(t, { url: 'http://no-such-host.invalid/mcp', ...through(proxy.url, '.invalid') })
    assert.match(excepted.state.reason ?? '', /^was not found/)
    assert.equal(proxy.asked.length, 0)
  })

  it('is reached through a proxy of its own on this machine too', async (t) => {
    const server = await startScripted(t, {})
    const proxy = await startProxy(t, { hosts: { [`127.0.0.1:${server.port}`]: server.port } })
    const named = { url: proxy.url, from: 'servers.remote.proxy' }
    const rules = { http: named, https: named, except: [] }
    const upstream = await upstreamOf(t, { url: server.url, proxy: rules })
    await upstream.call(call)
    assert.ok(proxy.asked.includes(`POST ${server.url}`))
  })

  it('must have a certificate for its own name, whatever the name of the proxy', async (t) => {
    const server = await startTls(t)
    const proxy = await startProxy(t, { hosts: { 'other.example.com:443': server.port } })
    const upstream = await upstreamOf(t, { url: 'https://other.example.com/mcp', ca: AUTHORITY, ...through(proxy.url) })
    assert.equal(upstream.state.reason, 'has a certificate for other names than that in its URL')
    assert.equal(server.seen.length, 0)
  })

  it('is found to speak HTTP+SSE through the proxy too', async (t) => {
    const script: Script = {
      'server/discover': status(404),
      initialize: status(404),
      GET: ({ res }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write('event: endpoint\ndata: /messages\n\n')
      },
    }
    const server = await startTls(t, script)
    const proxy = await startProxy(t, { hosts: { 'mcp.example.com:443': server.port } })
    const upstream = await upstreamOf(t, { url: HTTPS, ca: AUTHORITY, ...through(proxy.url) })
    assert.match(upstream.state.reason ?? '', /^speaks HTTP\+SSE/)
  })

  it('is reached again after the proxy closed its connections', async (t) => {
    const server = await startTls(t)
    const proxy = await startProxy(t, { hosts: { 'mcp.example.com:443': server.port } })
    const upstream = await upstreamOf(t, { url: HTTPS, ca: AUTHORITY, ...through(proxy.url) })
    await upstream.call(call)
    proxy.cut()
    await upstream.call(call).catch(() => undefined)
    await upstream.call(call)
    assert.equal(upstream.state.restarts, 0)
  })
})

describe('a proxy that cannot be used', () => {
  const SECRET = /vera|secret|dmVyYT/
  for (const url of [HTTPS, PLAIN]) {
    it(`is named with what mends it when it asks for a login (${url})`, async (t) => {
      const proxy = await startProxy(t, { hosts: {}, login: 'vera:secret' })
      const upstream = await upstreamOf(t, { url, ...through(proxy.url.replace('//', '//vera:secret-no@')) })
      assert.equal(
        upstream.state.reason,
        url === HTTPS
          ? `cannot be reached: the proxy 127.0.0.1:${proxy.port} (ALL_PROXY) asked for a login (HTTP 407); write its user and password in the URL of ALL_PROXY`
          : 'is behind a proxy that asks for a login (HTTP 407); write its user and password in the URL of the proxy',
      )
      assert.doesNotMatch(JSON.stringify([upstream.state, upstream.lines]), SECRET)
    })

    it(`is named when nothing listens there (${url})`, async (t) => {
      const port = await findFreePort()
      const upstream = await upstreamOf(t, { url, ...through(`http://vera:secret@127.0.0.1:${port}`) })
      assert.equal(
        upstream.state.reason,
        `cannot be reached: the proxy 127.0.0.1:${port} (ALL_PROXY) refused the connection: nothing listens there`,
      )
    })

    it(`is named when it is not one of http (${url})`, async (t) => {
      const upstream = await upstreamOf(t, { url, ...through('socks5://vera:secret@127.0.0.1:1080') })
      assert.equal(
        upstream.state.reason,
        'cannot be reached: the proxy in ALL_PROXY is not one of http or https, such as http://proxy.example.com:3128',
      )
    })
  }

  it('is named when it refuses the server', async (t) => {
    const proxy = await startProxy(t, { hosts: {}, refuses: 403 })
    const upstream = await upstreamOf(t, { url: HTTPS, ...through(proxy.url) })
    assert.equal(
      upstream.state.reason,
      `cannot be reached: the proxy 127.0.0.1:${proxy.port} (ALL_PROXY) did not open a connection to mcp.example.com:443 (HTTP 403)`,
    )
  })

  it('is named when its certificate is of an unknown authority', async (t) => {
    const proxy = await startProxy(t, { hosts: {}, tls: true })
    const upstream = await upstreamOf(t, { url: HTTPS, ...through(proxy.url) })
    assert.match(
      upstream.state.reason ?? '',
      /^cannot be reached: the proxy 127\.0\.0\.1:\d+ \(ALL_PROXY\) has a certificate of an unknown authority/,
    )
  })
})

describe('a server with TLS', () => {
  it('is trusted by the file of its authority, for itself alone', async (t) => {
    const server = await startTls(t)
    const trusting = await upstreamOf(t, { url: server.url, ca: AUTHORITY })
    await trusting.call(call)
    const other = await upstreamOf(t, { url: server.url })
    assert.equal(
      other.state.reason,
      'has a certificate of an unknown authority; name the file of its authority as "ca" of the server, or in NODE_EXTRA_CA_CERTS',
    )
  })

  it('is named when there is no TLS', async (t) => {
    const server = await startScripted(t, {})
    const upstream = await upstreamOf(t, { url: server.url.replace('http:', 'https:') })
    assert.match(
      upstream.state.reason ?? '',
      /^does not speak TLS there; if that is right, write http:\/\/ in its URL$/,
    )
  })
})
