import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { generateKeyPair, SignJWT } from 'jose'
import type { GatewayConfig } from '@toolgate/gateway'
import { tempFolder, until } from './support/gateway.ts'
import { openLive } from './support/live.ts'
import { keycloak } from './support/providers/keycloak.ts'
import { google } from './support/providers/google.ts'
import type { Claims, Provider, StandIn } from './support/providers/provider.ts'
import { CONSOLE_KEY, startWorld, Visitor, type World } from './support/providers/signing-in.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Sessions that a provider ends, a gateway that starts again, and providers that do not answer as they should. */

let server: RecordingServer
before(async () => {
  server = await startRecordingServer([{ name: 'open' }])
})
after(() => server?.close())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function world(
  provider: Provider,
  given: Partial<GatewayConfig> = {},
  change?: (yaml: string) => string,
): Promise<World> {
  const opened = await startWorld(provider, change, { servers: [httpServer('up', server.url)], ...given })
  closing.push(opened.close)
  return opened
}

const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

/** The claims of a logout token of Keycloak, for the person and the session of the next login. */
function logoutOf(standIn: StandIn, changed: Claims = {}): Claims {
  const now = Math.floor(Date.now() / 1000)
  const { id } = standIn.people['ann'] ?? {}
  const who = { sub: id, sid: standIn.session, typ: 'Logout' }
  return { aud: 'toolgate-console', jti: crypto.randomUUID(), exp: now + 120, ...who, events: EVENTS, ...changed }
}

async function report({ gateway, standIn }: World, claims: Claims, header: Claims = {}): Promise<Response> {
  return send(gateway.url, await standIn.sign(claims, { typ: 'logout+jwt', ...header }))
}

function send(url: string, token: string): Promise<Response> {
  return fetch(`${url}/api/oidc/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }),
  })
}

async function endings({ gateway }: World): Promise<readonly Claims[]> {
  const { body } = await gateway.api('/api/audit?event=login_ended', { key: CONSOLE_KEY })
  return (body as { records: Claims[] }).records
}

describe('a session that the provider ends', () => {
  it('ends in the console, in its sockets and for tokens of that session, and is recorded', async () => {
    const all = await world(keycloak)
    const { standIn, gateway, visitor, tools, logged } = all
    const { session } = standIn
    standIn.session = 'of-bob'
    const bob = new Visitor(gateway, standIn)
    await bob.logIn('bob')
    standIn.session = session
    await visitor.logIn('ann')
    const token = await standIn.accessToken('ann')
    const other = await standIn.accessToken('ann', { sid: 'of-another-device' })
    const page = await openLive(gateway.url, { cookie: visitor.cookie, origin: gateway.url })
    assert.deepEqual(await tools(token), ['up__open'])
    assert.deepEqual(await tools(other), ['up__open'])
    logged(/acme can report ended sessions: register http.*\/api\/oidc\/backchannel-logout/)

    const answer = await report(all, logoutOf(standIn, { sub: undefined }))
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(await visitor.session(), 401)
    await until(() => page.closed() !== undefined)
    assert.equal(await tools(token), 401)
    assert.deepEqual(await tools(other), ['up__open'])
    assert.notEqual(await bob.session(), 401)
    const [record] = await endings(all)
    assert.match(String(record?.['detail']), /acme ended one session; logins that ended here: 1/)
    // What the issuer gives from here on is valid.
    standIn.session = 'of-a-new-login'
    assert.deepEqual(await tools(await standIn.accessToken('ann')), ['up__open'])
    assert.equal((await visitor.logIn('ann')).status, 303)
  })

  it('ends the streams and the MCP sessions of its tokens', async () => {
    const all = await world(keycloak)
    const { standIn, gateway } = all
    const listen = async (token: string) => {
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
      const begun = await fetch(gateway.mcpUrl, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
      })
      const session = begun.headers.get('mcp-session-id') ?? ''
      await begun.text()
      const stream = await fetch(gateway.mcpUrl, { headers: { ...headers, 'mcp-session-id': session } })
      assert.equal(stream.status, 200)
      return { session, reading: stream.text() }
    }
    const statusIn = async (session: string, token: string) => {
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
      const answer = await fetch(gateway.mcpUrl, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'mcp-session-id': session },
        body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' }),
      })
      return answer.status
    }
    const ann = await listen(await standIn.accessToken('ann'))
    const bob = await listen(await standIn.accessToken('bob', { sid: 'of-bob' }))
    const over: string[] = []
    const noted = [ann, bob].map(({ reading }, n) => reading.catch(() => '').then(() => over.push(`${n}`)))
    await all.tools(await standIn.accessToken('ann'))
    assert.deepEqual(over, [])
    // Of the same second as the logout, a token could be older.
    const later = Math.floor(Date.now() / 1000) + 5
    assert.equal((await report(all, logoutOf(standIn))).status, 200)
    await noted[0]
    assert.deepEqual(over, ['0'])
    assert.equal(await statusIn(ann.session, await standIn.accessToken('ann', { sid: 'new', iat: later })), 404)
    assert.equal(await statusIn(bob.session, await standIn.accessToken('bob', { sid: 'of-bob' })), 200)
  })

  it('ends for every token of a person that was issued before, if no session is named', async () => {
    const all = await world(keycloak)
    const { standIn, gateway, visitor, tools } = all
    await visitor.logIn('ann')
    const bob = new Visitor(gateway, standIn)
    await bob.logIn('bob')
    const earlier = Math.floor(Date.now() / 1000) - 60
    const old = await standIn.accessToken('ann', { iat: earlier, sid: 'a' })
    const unused = await standIn.accessToken('ann', { iat: earlier, sid: undefined })
    const timeless = await standIn.accessToken('ann', { iat: undefined })
    const ofBob = await standIn.accessToken('bob', { iat: earlier })
    assert.deepEqual(await tools(old), ['up__open'])
    assert.equal((await report(all, logoutOf(standIn, { sid: undefined, iat: earlier + 30 }))).status, 200)
    assert.equal(await visitor.session(), 401)
    for (const token of [old, unused, timeless]) assert.equal(await tools(token), 401)
    assert.deepEqual(await tools(ofBob), ['up__open'])
    assert.notEqual(await bob.session(), 401)
    assert.deepEqual(await tools(await standIn.accessToken('ann', { sid: 'a' })), ['up__open'])
    const [record] = await endings(all)
    assert.equal(record?.['user_id'], `acme/${standIn.people['ann']?.id}`)
  })

  it('is named by nobody but the provider, once', async () => {
    const all = await world(keycloak)
    const { standIn, gateway, visitor, tools, logged } = all
    await visitor.logIn('ann')
    const token = await standIn.accessToken('ann')
    const now = Math.floor(Date.now() / 1000)
    const cases: readonly (readonly [string, Claims, Claims?])[] = [
      ['is for another client', { aud: 'mcp-client' }],
      ['"iss" is of another issuer', { iss: 'https://evil.example' }],
      ['has a "nonce"', { nonce: 'n' }],
      ['no logout event', { events: undefined }],
      ['no logout event', { events: { other: {} } }],
      ['no logout event', { events: { 'http://schemas.openid.net/event/backchannel-logout': true } }],
      ['neither "sub" nor "sid"', { sub: undefined, sid: undefined }],
      ['no "jti"', { jti: undefined }],
      ['no "iat"', { iat: undefined }],
      ['has expired', { exp: now - 60 }],
      ['has expired', { iat: now - 3600, exp: now + 3600 }],
      ['from the future', { iat: now + 3600, exp: now + 7200 }],
      ['of another type', {}, { typ: 'at+jwt' }],
      ['no key', {}, { kid: 'other' }],
    ]
    for (const [problem, changed, header] of cases) {
      assert.equal((await report(all, logoutOf(standIn, changed), header)).status, 400, problem)
    }
    const { privateKey } = await generateKeyPair('RS256')
    const forged = await new SignJWT({ iss: standIn.issuer, iat: now, ...logoutOf(standIn) })
      .setProtectedHeader({ alg: 'RS256', typ: 'logout+jwt' })
      .sign(privateKey)
    const unsigned = [{ alg: 'none' }, { iss: standIn.issuer, iat: now, ...logoutOf(standIn) }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    for (const bad of [forged, `${unsigned}.`, token, 'x', '']) assert.equal((await send(gateway.url, bad)).status, 400)
    assert.notEqual(await visitor.session(), 401)
    assert.deepEqual(await tools(token), ['up__open'])
    assert.deepEqual(await endings(all), [])
    logged(/a logout of acme failed: the logout token is for another client/)

    const once = await standIn.sign(logoutOf(standIn), { typ: 'logout+jwt' })
    assert.equal((await send(gateway.url, once)).status, 200)
    await visitor.logIn('ann')
    assert.equal((await send(gateway.url, once)).status, 400)
    assert.notEqual(await visitor.session(), 401)
  })

  it('is reported by drafts of the specification too, without "exp" and without a type', async () => {
    const all = await world(keycloak)
    await all.visitor.logIn('ann')
    assert.equal((await report(all, { ...logoutOf(all.standIn), exp: undefined }, { typ: undefined })).status, 200)
    assert.equal(await all.visitor.session(), 401)
  })

  it('shows in /readyz where the provider offers it, and is no route without a login', async () => {
    const { gateway } = await world(keycloak)
    await until(async () => /"reportsLogouts":true/.test(JSON.stringify((await gateway.api('/readyz')).body)))
    const without = await world(google, {}, (yaml) => yaml.replace(/^oidc:[\s\S]*/m, ''))
    assert.equal((await send(without.gateway.url, 'x')).status, 404)
  })
})

describe('a gateway that starts again', () => {
  it('knows who is logged in and who was logged out, and stores no secret', async (t) => {
    const folder = tempFolder()
    t.after(() => folder.remove())
    const file = path.join(folder.path, 'state.db')
    const state = { state: { store: 'sqlite', path: file } } as Partial<GatewayConfig>
    const first = await world(keycloak, state)
    const { standIn, visitor } = first
    await visitor.logIn('ann')
    const session = await visitor.session()
    const token = await standIn.accessToken('ann', { sid: 'ended' })
    assert.equal((await report(first, logoutOf(standIn, { sid: 'ended', sub: undefined }))).status, 200)
    const { port } = new URL(first.gateway.url)
    await first.gateway.close()
    const secret = visitor.cookie.match(/session_\d+=([^;]+)/)?.[1] ?? ''
    assert.ok(secret.length > 20)
    for (const name of readdirSync(folder.path))
      assert.ok(!readFileSync(path.join(folder.path, name)).includes(secret), name)

    const again = async (change: (config: string) => string) => {
      const next = await first.again({ listen: { host: '127.0.0.1', port: Number(port) } }, change)
      closing.push(next.close)
      return next
    }
    const second = await again((yaml) => yaml)
    assert.deepEqual(await visitor.session(second.url), session)
    const { headers, body } = toMessage(MODERN, 'tools/list')
    const sending = { method: 'POST', headers: { ...headers, authorization: `Bearer ${token}` } }
    assert.equal((await fetch(second.mcpUrl, { ...sending, body: JSON.stringify(body) } as RequestInit)).status, 401)
    await second.close()
    // Who may log in, and with which roles, is another question now.
    const third = await again((yaml) => yaml.replace('tool-admin: [approver]', 'tool-admin: []'))
    assert.equal(await visitor.session(third.url), 401)
  })
})

describe('a provider that does not answer as it should', () => {
  const discovery = '/realms/acme/.well-known/openid-configuration'
  const exchange = '/realms/acme/protocol/openid-connect/token'

  it('is said to be down on the page of the login, and why in the log', async () => {
    const { standIn, visitor, logged } = await world(keycloak, {}, (yaml) =>
      yaml.replace(/^oauth:[\s\S]*(?=^oidc)/m, ''),
    )
    standIn.answers[discovery] = (_request, response) => response.writeHead(500).end()
    const answer = await visitor.logIn('ann')
    assert.equal(answer.status, 503)
    assert.match(await answer.text(), /acme does not answer as it should/)
    logged(/openid-configuration answered 500/)
  })

  it('is not followed to another address', async () => {
    let asked = 0
    const inner = createServer((_request, response) => {
      asked++
      response.end('{}')
    })
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.1', resolve))
    closing.push(() => inner.close())
    const location = `http://127.0.0.1:${(inner.address() as AddressInfo).port}/`
    const { standIn, visitor, logged } = await world(keycloak)
    standIn.answers[exchange] = (_request, response) => response.writeHead(307, { location }).end()
    assert.equal((await visitor.logIn('ann')).status, 403)
    assert.equal(asked, 0)
    logged(/token answered 307 without an ID token/)
  })

  it('is read no further than 512 KiB', async () => {
    const { standIn, visitor, logged } = await world(keycloak)
    let sent = 0
    standIn.answers[exchange] = (request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (response.write(' '.repeat(65_536))) sent += 65_536
      }
      response.on('drain', more)
      more()
    }
    assert.equal((await visitor.logIn('ann')).status, 503)
    logged(/answered more than 524288 bytes/)
    assert.ok(sent < 50_000_000, `${sent} bytes were sent`)
  })

  it('is waited for no longer than five seconds', async () => {
    const { standIn, visitor, logged } = await world(keycloak)
    standIn.answers[exchange] = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{')
    }
    assert.equal((await visitor.logIn('ann')).status, 503)
    logged(/did not answer within 5000 ms/)
  })

  it('has its refusal in the log', async () => {
    const { standIn, visitor, logged } = await world(keycloak)
    assert.equal((await visitor.logIn('nobody')).status, 403)
    logged(/the authorization server refused the login \("access_denied: nobody of this name"\)/)
    standIn.answers[exchange] = (_request, response) =>
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}')
    assert.equal((await visitor.logIn('ann')).status, 403)
    logged(/token answered 401 without an ID token \("invalid_client"\)/)
  })

  it('gets the secret in the form, if it takes no header', async () => {
    const { standIn, visitor } = await world(keycloak)
    const document = keycloak.documents(new URL(standIn.issuer).origin)[discovery]
    standIn.answers[discovery] = (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ ...document, token_endpoint_auth_methods_supported: ['client_secret_post'] }))
    assert.equal((await visitor.logIn('ann')).status, 303)
    assert.equal(standIn.exchanges[0]?.get('client_secret'), 'secret-of-the-console')
    assert.ok(standIn.exchanges[0]?.has('code_verifier'))
  })
})
