import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  discovered,
  type Exchange,
  result,
  type Script,
  type ScriptedServer,
  startScripted,
  status,
  tool,
} from '../../../fixtures/scripted-http.ts'
import { serverConfig, testUpstream } from '../../../fixtures/servers.ts'
import { pathOfRedirect, redirectProblem } from './redirects.ts'

const { signal } = new AbortController()
const call = { method: 'tools/call' as const, params: { name: 't', arguments: {} }, caller: {}, signal }
const never = { backoff: { firstMs: 1_000_000, maxMs: 1_000_000 } }
const SECRET = { authorization: 'Bearer of-the-operator' }
const MODERN: Script = {
  'server/discover': (exchange) => discovered(exchange),
  'tools/list': (exchange) => result(exchange, { tools: [tool('t')], resultType: 'complete', ttlMs: 0 }),
  'tools/call': (exchange) => result(exchange, { content: [], resultType: 'complete' }),
}

/** A server whose configured path redirects. */
async function redirecting(
  t: TestContext,
  script: Script,
  { from = '/mcp', redirect }: { from?: string; redirect: (exchange: Exchange, server: ScriptedServer) => void },
) {
  const paths: string[] = []
  const server: ScriptedServer = await startScripted(
    t,
    { ...script, redirect: (exchange) => redirect(exchange, server) },
    0,
    ({ req, message }) => {
      paths.push(`${message.method ?? req.method} ${req.url}`)
      return req.url === from ? 'redirect' : undefined
    },
  )
  const url = server.url.replace('/mcp', from)
  const upstream = testUpstream(t, serverConfig({ name: 'remote', url, headers: SECRET }), never)
  await upstream.start()
  return { server, upstream, paths, url }
}

describe('a server that redirects', () => {
  for (const code of [301, 302, 307, 308])
    for (const [era, script] of [
      ['legacy', {}],
      ['modern', MODERN],
    ] as const)
      for (const [from, to] of [
        ['/mcp', '/mcp/'],
        ['/mcp/', '/mcp'],
        ['/mcp?key=1', '/mcp/?key=1'],
      ] as const)
        it(`with ${code} from ${from} to ${to} is followed once, and asked there from then on (${era})`, async (t) => {
          const { upstream, paths } = await redirecting(t, script, {
            from,
            redirect: status(code, '', { location: to }),
          })
          await upstream.call(call)
          assert.equal(upstream.state.status, 'ready')
          assert.equal(paths.filter((path) => path.endsWith(` ${from}`)).length, 1)
          assert.deepEqual(paths.slice(0, 2), [`server/discover ${from}`, `server/discover ${to}`])
        })

  it('is followed where its address is written whole', async (t) => {
    const { upstream } = await redirecting(
      t,
      {},
      {
        redirect: ({ req, res }) => void res.writeHead(307, { location: `http://${req.headers.host}/mcp/` }).end(),
      },
    )
    assert.equal(upstream.state.status, 'ready')
  })

  it('is followed with a call too, which runs once', async (t) => {
    let moved = false
    let ran = 0
    const { server, upstream } = await redirecting(
      t,
      { 'tools/call': (exchange) => result(exchange, { content: [], ran: ++ran }) },
      {
        redirect: (exchange, { answer }) =>
          moved ? status(308, '', { location: '/mcp/' })(exchange) : answer(exchange),
      },
    )
    moved = true
    await Promise.all([upstream.call(call), upstream.call(call), upstream.call(call)])
    assert.equal(ran, 3)
    assert.equal(server.sent('initialize').length, 1)
  })

  for (const code of [301, 302])
    it(`is not followed with a call by ${code}, after which the call may have run`, async (t) => {
      let moved = false
      const { server, upstream } = await redirecting(
        t,
        {},
        {
          redirect: (exchange, { answer }) =>
            moved ? status(code, '', { location: '/mcp/' })(exchange) : answer(exchange),
        },
      )
      moved = true
      await assert.rejects(upstream.call(call), {
        message: /redirects to http:\/\/127\.0\.0\.1:\d+\/mcp\/; write that as "url"$/,
      })
      assert.equal(server.sent('tools/call').length, 1)
    })

  it('to another origin gets no request there, and no credentials', async (t) => {
    const other = await startScripted(t, {})
    const { upstream } = await redirecting(t, {}, { redirect: status(307, '', { location: `${other.url}/` }) })
    assert.equal(upstream.state.reason, `redirects to ${other.url}/; write that as "url"`)
    assert.equal(other.seen.length, 0)
  })

  for (const [what, location] of [
    ['to another path', '/v2/mcp'],
    ['to another path with the same end', '/x/mcp/'],
    ['to two slashes', '/mcp//'],
    ['with another query', '/mcp/?admin=1'],
    ['to a host by two slashes', '//127.0.0.1/mcp/'],
    ['with a user', 'http://user:password@HOST/mcp/'],
  ] as const)
    it(`${what} is not followed`, async (t) => {
      const redirect = ({ req, res }: Exchange) =>
        void res.writeHead(307, { location: location.replace('HOST', req.headers.host ?? '') }).end()
      const { upstream, paths } = await redirecting(t, {}, { redirect })
      assert.match(upstream.state.reason ?? '', /^redirects to http:\/\/127\.0\.0\.1(:\d+)?\/\S*; write that as "url"$/)
      assert.doesNotMatch(upstream.state.reason ?? '', /password|admin/)
      assert.deepEqual([...new Set(paths)], ['server/discover /mcp'])
    })

  it('in a circle is asked twice', async (t) => {
    const server = await startScripted(t, {
      'server/discover': ({ req, res }) =>
        void res.writeHead(307, { location: req.url === '/mcp' ? '/mcp/' : '/mcp' }).end(),
    })
    const upstream = testUpstream(t, serverConfig({ url: server.url }), never)
    await upstream.start()
    assert.match(upstream.state.reason ?? '', /^redirects to /)
    assert.equal(server.seen.length, 2)
  })
})

describe('pathOfRedirect', () => {
  const url = new URL('https://mcp.example.com/mcp?team=a')
  const answer = (location: string | undefined, code = 307) => ({ status: code, location })

  it('keeps the query that a redirect leaves out', () =>
    assert.equal(pathOfRedirect(answer('/mcp/'), { url, isRepeatable: false }), '/mcp/?team=a'))

  for (const [what, location, code] of [
    ['303, which asks for another answer', '/mcp/', 303],
    ['300', '/mcp/', 300],
    ['304', '/mcp/', 304],
    ['http in place of https', 'http://mcp.example.com/mcp/', 307],
    ['another port', 'https://mcp.example.com:8443/mcp/', 307],
    ['another host', 'https://mcp.example.com.evil.example/mcp/', 307],
    ['no location', undefined, 307],
    ['no URL', 'http://[', 307],
  ] as const)
    it(`does not follow ${what}`, () =>
      assert.equal(pathOfRedirect(answer(location, code), { url, isRepeatable: true }), undefined))
})

describe('redirectProblem', () => {
  const from = new URL('https://mcp.example.com/mcp')

  it('names the URL with https of a server whose proxy ends TLS', () =>
    assert.equal(
      redirectProblem('http://mcp.example.com/mcp/', from),
      'redirects to http://mcp.example.com/mcp/; write https://mcp.example.com/mcp/ as "url"',
    ))

  it('shows no query, which may hold secrets', () =>
    assert.equal(
      redirectProblem('https://login.example.com/in?token=x', from),
      'redirects to https://login.example.com/in; write that as "url"',
    ))

  it('names no address that is not one of http', () =>
    assert.equal(
      redirectProblem('javascript:alert(1)', from),
      'redirects to an address that is not one of http or https',
    ))
})
