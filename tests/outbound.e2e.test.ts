import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { type GatewayConfig, loadConfig } from '@toolgate/gateway'
import {
  initialized,
  json,
  result,
  type Script,
  startScripted,
  status,
} from '../packages/gateway/fixtures/scripted-http.ts'
import { AUTHORITY, SERVER } from '../packages/gateway/fixtures/test-certificates.ts'
import { startProxy } from '../packages/gateway/fixtures/test-proxy.ts'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { MODERN } from './support/rpc.ts'

/** A gateway in a company's network: servers and issuers are behind a proxy, and one has an authority of its own. */

const ISSUER = 'https://login.example.com'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

function tokenFor(audience: string): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: ISSUER, sub: 'vera', aud: audience, iat: now, exp: now + 600 }
  const text = `${encode({ alg: 'ES256', typ: 'at+jwt', kid: 'k' })}.${encode(claims)}`
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

const LOGIN: Script = {
  GET: ({ req, res }) => {
    const jwks_uri = `${ISSUER}/jwks`
    if (req.url === '/jwks') return json(res, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k' }] })
    return json(res, { issuer: ISSUER, jwks_uri })
  },
}

/** What a file and an environment make of a gateway. */
async function start(t: TestContext, text: string, env: Record<string, string>) {
  const gateway = await startTestGateway(load(t, text, env))
  t.after(gateway.close)
  return gateway
}

function load(t: TestContext, text: string, env: Record<string, string>): Partial<GatewayConfig> {
  const folder = tempFolder()
  t.after(folder.remove)
  writeFileSync(join(folder.path, 'company.pem'), AUTHORITY)
  const file = join(folder.path, 'toolgate.yaml')
  const rest = 'callers: [{ key: demo-vera, user: vera }]\npolicy: [{ allow: ["*"] }]\n'
  const { servers, secrets, oauth, proxy } = loadConfig(file, { text: `${text}\n${rest}`, env })
  return { servers, ...(secrets && { secrets }), ...(oauth && { oauth }), ...(proxy && { proxy }) }
}

const SUMS = 'servers: { sums: { url: https://mcp.example.com/mcp, ca: company.pem, per: shared } }'

describe('a gateway behind a proxy', () => {
  it('calls a server with its own authority, over the proxy of the environment', async (t) => {
    const server = await startScripted(t, {}, 0, undefined, SERVER)
    const proxy = await startProxy(t, { hosts: { 'mcp.example.com:443': server.port }, login: 'gate:p4ssw0rd' })
    const HTTPS_PROXY = proxy.url.replace('//', '//gate:p4ssw0rd@')
    const gateway = await start(t, SUMS, { HTTPS_PROXY })
    assert.deepEqual(await gateway.list('viewer', MODERN), ['sums__t'])
    assert.equal((await gateway.call('viewer', MODERN, 'sums__t')).error, undefined)
    assert.ok(proxy.asked.length > 0)
    assert.doesNotMatch(JSON.stringify([gateway.log, gateway.servers()]), /p4ssw0rd/)
  })

  it('takes tokens of an issuer that only the proxy reaches', async (t) => {
    const usual = getCACertificates('default')
    setDefaultCACertificates([...usual, AUTHORITY])
    t.after(() => setDefaultCACertificates(usual))
    const server = await startScripted(t, {}, 0, undefined, SERVER)
    const login = await startScripted(t, LOGIN, 0, undefined, SERVER)
    const hosts = { 'mcp.example.com:443': server.port, 'login.example.com:443': login.port }
    const proxy = await startProxy(t, { hosts })
    const gateway = await start(t, `${SUMS}\noauth: { issuers: [{ issuer: ${ISSUER} }] }`, { ALL_PROXY: proxy.url })
    const authorization = `Bearer ${tokenFor(gateway.mcpUrl)}`
    const answer = await gateway.ask('viewer', MODERN, 'tools/list', {}, { headers: { authorization } })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(proxy.asked.includes('CONNECT login.example.com:443'))
  })

  it('says which proxy refuses, at every place where a person looks', async (t) => {
    const proxy = await startProxy(t, { hosts: {}, login: 'gate:p4ssw0rd' })
    const gateway = await start(t, SUMS, { HTTPS_PROXY: proxy.url.replace('//', '//gate:wr0ng-one@') })
    const reason = `cannot be reached: the proxy 127.0.0.1:${proxy.port} (HTTPS_PROXY) asked for a login (HTTP 407); write its user and password in the URL of HTTPS_PROXY`
    assert.equal(gateway.servers()[0]?.reason, reason)
    const { body } = await gateway.api('/api/tools?as=viewer')
    assert.ok(JSON.stringify(body).includes(reason))
    assert.ok(gateway.log.some(({ message }) => message.includes(reason)))
    assert.doesNotMatch(JSON.stringify([gateway.log, body]), /wr0ng-one/)
  })

  it('reaches a server through another proxy after a reload, without a restart', async (t) => {
    const server = await startScripted(t, {}, 0, undefined, SERVER)
    const hosts = { 'mcp.example.com:443': server.port }
    const [before, after] = [await startProxy(t, { hosts }), await startProxy(t, { hosts })]
    const read = (proxy: string) => load(t, `proxy: ${proxy}\n${SUMS}`, {})
    const gateway = await startTestGateway(read(before.url), () => read(after.url))
    t.after(gateway.close)
    assert.equal((await gateway.call('viewer', MODERN, 'sums__t')).error, undefined)
    const { body } = await gateway.api('/api/reload', { method: 'POST', body: {} })
    assert.deepEqual((body as { restartNeeded?: unknown }).restartNeeded, [])
    await until(() => after.asked.length > 0 && gateway.servers()[0]?.status === 'ready')
    assert.equal((await gateway.call('viewer', MODERN, 'sums__t')).error, undefined)
  })

  it('says where a server redirects, and asks nobody there', async (t) => {
    const elsewhere = await startScripted(t, {})
    const moved = await startScripted(t, {
      'server/discover': status(308, '', { location: elsewhere.url }),
    })
    const gateway = await start(t, `servers: { sums: { url: "${moved.url}", per: shared } }`, {})
    const { body } = await gateway.api('/api/tools?as=viewer')
    assert.ok(JSON.stringify(body).includes(`redirects to ${elsewhere.url}; write that as \\"url\\"`))
    assert.equal(elsewhere.seen.length, 0)
  })
})

describe('a server with sessions behind a gateway', () => {
  for (const [what, lost] of [
    ['401', status(401)],
    ['410', status(410)],
    ['404', status(404)],
  ] as const)
    it(`serves the next call of every client when its session ended with ${what}`, async (t) => {
      let session = 's1'
      let calls = 0
      const inSession =
        (answer: Script[string]): Script[string] =>
        (exchange) =>
          exchange.headers['mcp-session-id'] === session ? answer(exchange) : lost(exchange)
      const server = await startScripted(t, {
        initialize: (exchange) => initialized(exchange, { session }),
        ping: inSession((exchange) => result(exchange, {})),
        'tools/call': inSession((exchange) => result(exchange, { content: [], structuredContent: { calls: ++calls } })),
      })
      const gateway = await start(t, `servers: { sums: { url: "${server.url}", per: shared } }`, {})
      for (const era of ['2025-06-18', MODERN] as const) {
        session += '+'
        const answer = await gateway.call('viewer', era, 'sums__t')
        assert.equal(answer.result?.isError, undefined, JSON.stringify(answer))
      }
      assert.equal(calls, 2, 'each call ran once')
      await until(() => gateway.servers()[0]?.status === 'ready')
    })
})
