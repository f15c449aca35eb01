import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Caller } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { json, startIssuer } from '../../testing/oauth.ts'
import { createOriginRules } from '../../auth/origin.ts'
import { authenticateKeys } from '../../auth/keyring.ts'
import { createSessions } from '../http/access.ts'
import { createOidcRoutes } from './oidc.ts'

const clock = { wallMs: () => 0, monotonicMs: () => 0 }

/** The routes of a gateway that is reached at a URL, and an issuer that answers each code. */
async function setup(t: TestContext, publicUrl: string) {
  const issuer = await startIssuer(t, { claims: { user: 'sub', roles: 'groups' } })
  issuer.answers['/.well-known/oauth-authorization-server'] = (_request, response) =>
    json(response, {
      issuer: issuer.issuer,
      jwks_uri: `${issuer.issuer}/jwks`,
      authorization_endpoint: `${issuer.issuer}/authorize`,
      token_endpoint: `${issuer.issuer}/token`,
    })
  const config = { server: issuer.config, clientId: 'console', scopes: ['openid'], roles: new Map([['admins', []]]) }
  const logged: string[] = []
  const came: unknown[] = []
  const refused: unknown[] = []
  const deps = {
    config,
    publicUrl,
    clock,
    state: memoryState({ clock }),
    log: (line: string) => logged.push(line),
    onLogin: (person: Caller, label: string | undefined) => came.push([person.user, label]),
    onRefused: ({ user }: Caller) => refused.push(user),
  }
  const routes = createOidcRoutes(deps)
  const access = {
    authenticator: authenticateKeys([]),
    origins: createOriginRules({ host: '127.0.0.1', port: 80, origins: [publicUrl] }),
    sessions: createSessions({ clock }),
    cookieName: 'session',
  }
  const request = (path: string, headers = {}) =>
    new Request(publicUrl + path, { headers: { host: new URL(publicUrl).host, ...headers } })
  return {
    logged,
    came,
    refused,
    begin: (path = '/api/oidc/login', headers = {}) => routes.begin(request(path, headers), access),
    /** Comes back from the issuer with the cookie of a login that has begun. */
    async finish(begun: Response, cookie: string, groups = 'admins') {
      const asked = new URL(begun.headers.get('location') ?? '').searchParams
      const claims = {
        aud: 'console',
        client_id: undefined,
        nonce: asked.get('nonce'),
        groups,
        name: 'Vera V.',
      }
      const token = await issuer.sign(claims, { typ: 'JWT' })
      issuer.answers['/token'] = (_request, response) => json(response, { id_token: token })
      return routes.finish(request(`/api/oidc/callback?code=c&state=${asked.get('state')}`, { cookie }), access)
    },
  }
}

/** Returns the cookie of an answer, as a browser sends it, and its attributes. */
function cookieOf(answer: Response): readonly [cookie: string, ...attributes: string[]] {
  const [cookie = '', ...attributes] = (answer.headers.getSetCookie()[0] ?? '').split('; ')
  return [cookie, ...attributes]
}

describe('createOidcRoutes', () => {
  it('keeps a login that has begun in a cookie that no other host can set', async (t) => {
    const { begin, finish, logged, came } = await setup(t, 'https://tools.example.com')
    const begun = await begin()
    const [cookie, ...attributes] = cookieOf(begun)
    assert.match(cookie, /^__Host-session_oidc=/)
    assert.deepEqual(attributes, ['Path=/', 'Max-Age=600', 'HttpOnly', 'SameSite=Lax', 'Secure'])
    // Another host of the domain could set this one.
    assert.equal((await finish(begun, cookie.replace('__Host-', ''))).status, 403)
    assert.match(logged.join(), /another browser/)
    const ended = await finish(begun, cookie)
    assert.equal(ended.status, 303)
    assert.deepEqual(came, [['corp/vera', 'Vera V.']])
    assert.match(ended.headers.getSetCookie()[1] ?? '', /^__Host-session_oidc=; Path=\/; Max-Age=0;/)
    assert.equal((await finish(begun, cookie)).status, 403)
  })

  it('reports who may no longer log in, and nobody whose login failed', async (t) => {
    const { begin, finish, refused } = await setup(t, 'https://tools.example.com')
    const [first, second] = [await begin(), await begin()]
    assert.equal((await finish(first, cookieOf(second)[0], 'others')).status, 403)
    assert.deepEqual(refused, [])
    assert.equal((await finish(first, cookieOf(first)[0], 'others')).status, 403)
    assert.equal(refused.length, 1)
  })

  it('works without TLS on this machine', async (t) => {
    const { begin, finish } = await setup(t, 'http://127.0.0.1')
    const begun = await begin()
    const [cookie, ...attributes] = cookieOf(begun)
    assert.match(cookie, /^session_oidc=/)
    assert.deepEqual(attributes, ['Path=/', 'Max-Age=600', 'HttpOnly', 'SameSite=Lax'])
    assert.equal((await finish(begun, cookie)).status, 303)
  })

  it('leads back to a page of an approval, and to the console from any other address', async (t) => {
    const { begin, finish } = await setup(t, 'https://tools.example.com')
    const leads = async (back: string) => {
      const begun = await begin(`/api/oidc/login?back=${encodeURIComponent(back)}`)
      return (await finish(begun, cookieOf(begun)[0])).headers.get('location')
    }
    assert.equal(await leads('/approvals/a-1%20b'), '/approvals/a-1%20b')
    for (const back of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/approvals//evil.example',
      '/approvals/a?x',
      '/approvals/a\r\nset-cookie: x',
      '/approvals/\\evil',
      'approvals/a',
    ])
      assert.equal(await leads(back), '/', back)
  })

  it('logs why a login failed, and no more than ten lines a minute', async (t) => {
    const { begin, finish, logged } = await setup(t, 'https://tools.example.com')
    const begun = await begin()
    for (let i = 0; i < 30; i++) assert.equal((await finish(begun, '')).status, 403)
    assert.equal(logged.length, 10)
  })

  it('begins at the host that people come back to', async (t) => {
    const { begin } = await setup(t, 'https://tools.example.com')
    const answer = await begin('/api/oidc/login?back=%2F', { host: '10.0.0.1:8787' })
    assert.equal(answer.headers.get('location'), 'https://tools.example.com/api/oidc/login?back=%2F')
    assert.equal(answer.headers.get('set-cookie'), null)
  })
})
