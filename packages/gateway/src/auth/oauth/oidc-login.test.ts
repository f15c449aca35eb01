import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { text as readText } from 'node:stream/consumers'
import { generateKeyPair } from 'jose'
import { memoryState } from '@toolgate/core/stores'
import type { OidcConfig } from '../../config/oidc.ts'
import { OidcLogin } from './oidc-login.ts'
import { json, startIssuer } from '../../testing/oauth.ts'

const REDIRECT = 'https://tools.example.com/api/oidc/callback'

/** A console and an issuer whose next ID token a test chooses. Time stands still at 0. */
async function setup(t: TestContext, given: Partial<OidcConfig> = {}) {
  const issuer = await startIssuer(t, { claims: { user: 'sub', roles: 'groups' } })
  let nowMs = 0
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
  const config: OidcConfig = {
    server: issuer.config,
    clientId: 'console',
    clientSecret: 'secret',
    scopes: ['openid'],
    roles: new Map([
      ['admins', ['approver', 'operator']],
      ['staff', []],
    ]),
    ...given,
  }
  issuer.answers['/.well-known/oauth-authorization-server'] = (_request, response) =>
    json(response, {
      issuer: issuer.issuer,
      jwks_uri: `${issuer.issuer}/jwks`,
      authorization_endpoint: `${issuer.issuer}/authorize`,
      token_endpoint: `${issuer.issuer}/token`,
      end_session_endpoint: `${issuer.issuer}/logout`,
      authorization_response_iss_parameter_supported: true,
    })
  let sent = { authorization: '', form: new URLSearchParams() }
  const state = memoryState({ clock })
  const open = (changed: Partial<OidcConfig> = {}) =>
    new OidcLogin(
      { ...config, ...changed },
      { clock, state, redirectUri: REDIRECT, homeUrl: 'https://tools.example.com/' },
    )
  const login = open()
  const begin = async (wish = { back: '/' }) => {
    const { url, cookie } = await login.begin(wish)
    return { asked: new URL(url).searchParams, cookie }
  }
  type Begun = Awaited<ReturnType<typeof begin>>
  return {
    issuer,
    login,
    open,
    begin,
    sent: () => sent,
    pass: (ms: number) => (nowMs += ms),
    /** Answers a login as the issuer does, with changes. */
    async finish(
      { asked, cookie }: Begun,
      claims: Record<string, unknown> = {},
      changed: {
        readonly answer?: Record<string, string>
        readonly header?: Record<string, unknown>
        readonly key?: never
        readonly by?: OidcLogin
      } = {},
    ) {
      const nonce = asked.get('nonce')
      const all = { aud: 'console', client_id: undefined, nonce, groups: ['admins', 'other'], ...claims }
      const signed = { typ: 'JWT', ...changed.header }
      const token = await issuer.sign(all, signed, changed.key && { key: changed.key })
      issuer.answers['/token'] = (request, response) =>
        void readText(request).then((body) => {
          sent = { authorization: request.headers.authorization ?? '', form: new URLSearchParams(body) }
          json(response, { id_token: token, access_token: 'a', token_type: 'Bearer' })
        })
      const answer = { code: 'c', state: asked.get('state') ?? '', iss: issuer.issuer, ...changed.answer }
      return (changed.by ?? login).finish(new URLSearchParams(answer), cookie)
    },
  }
}

describe('OidcLogin', () => {
  it('asks with PKCE, state and nonce, and makes a person of the ID token', async (t) => {
    const { issuer, begin, finish, sent } = await setup(t)
    const begun = await begin()
    const { asked } = begun
    assert.deepEqual(
      ['response_type', 'client_id', 'redirect_uri', 'scope', 'code_challenge_method'].map((name) => asked.get(name)),
      ['code', 'console', REDIRECT, 'openid', 'S256'],
    )
    const { person, endsAtMs, back, logoutUrl } = await finish(begun)
    assert.deepEqual(person, { user: 'corp/vera', roles: ['approver', 'operator'] })
    assert.deepEqual([endsAtMs, back], [600_000, '/'])
    assert.ok(logoutUrl?.startsWith(`${issuer.issuer}/logout?id_token_hint=`))
    const { authorization, form } = sent()
    assert.equal(authorization, `Basic ${Buffer.from('console:secret').toString('base64')}`)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    assert.equal(challenge, asked.get('code_challenge'))
    const other = (await begin()).asked
    for (const name of ['state', 'nonce', 'code_challenge']) assert.notEqual(other.get(name), asked.get(name))
  })

  it('gives a person the roles of their groups and no others', async (t) => {
    const { begin, finish } = await setup(t)
    assert.deepEqual((await finish(await begin(), { groups: 'staff' })).person, { user: 'corp/vera', roles: [] })
    for (const groups of [[], ['other'], undefined, ['approver'], ['constructor']])
      await assert.rejects(finish(await begin(), { groups }), /may not log in/)
  })

  describe('refuses', () => {
    const cases: readonly [string, Record<string, unknown>, object, RegExp][] = [
      ['an answer to another login', {}, { answer: { state: 'other' } }, /another login/],
      [
        'an answer of another issuer',
        {},
        { answer: { iss: 'https://evil.example.com' } },
        /another authorization server/,
      ],
      ['an ID token of another login', { nonce: 'other' }, {}, /another login/],
      ['an ID token without a nonce', { nonce: undefined }, {}, /another login/],
      ['an ID token for another client', { aud: 'other' }, {}, /another client/],
      ['an ID token for many clients', { aud: ['console', 'other'] }, {}, /another client/],
      ['an ID token that another client got', { azp: 'other' }, {}, /another client/],
      ['an ID token of another issuer', { iss: 'https://evil.example.com' }, {}, /iss/],
      ['an expired ID token', { exp: -31 }, {}, /exp/],
      ['an ID token without a signature of the issuer', {}, { key: 'other' }, /signature/],
    ]
    for (const [what, claims, changed, problem] of cases)
      it(what, async (t) => {
        const { begin, finish } = await setup(t)
        const key = 'key' in changed ? { key: (await generateKeyPair('ES256')).privateKey as never } : {}
        await assert.rejects(finish(await begin(), claims, { ...changed, ...key }), problem)
      })

    it('an answer that names no issuer, although this one always does', async (t) => {
      const { begin, login } = await setup(t)
      const { asked, cookie } = await begin()
      const answer = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })
      await assert.rejects(login.finish(answer, cookie), /another authorization server/)
    })

    it('a second answer, one in another browser, and one that is late', async (t) => {
      const { begin, finish, pass } = await setup(t)
      const begun = await begin()
      await finish(begun)
      await assert.rejects(finish(begun), /has ended/)
      await assert.rejects(finish({ ...(await begin()), cookie: '' }), /another browser/)
      const late = await begin()
      pass(600_000)
      await assert.rejects(finish(late), /has ended/)
      pass(-600_000)
      await assert.rejects(finish(late), /has ended/, 'also when the clock goes back')
    })

    it('a cookie that was changed, and one of another client', async (t) => {
      const { begin, finish, open } = await setup(t)
      const begun = await begin()
      const [keyId, sealed = ''] = begun.cookie.split('.')
      const changed = `${keyId}.${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`
      await assert.rejects(finish({ ...begun, cookie: changed }), /another browser/)
      await assert.rejects(finish(begun, {}, { by: open({ clientId: 'other' }) }), /another browser/)
      await finish(begun)
    })
  })

  it('keeps nothing of logins that never end, so that no number of them ends another one', async (t) => {
    const { begin, finish, login } = await setup(t)
    const begun = await begin()
    for (let i = 0; i < 1200; i++) await login.begin({ back: '/' })
    assert.equal((await finish(begun)).person.user, 'corp/vera')
  })

  it('ends at another gateway with the same state, once', async (t) => {
    const { begin, finish, open } = await setup(t)
    const begun = await begin()
    await finish(begun, {}, { by: open() })
    await assert.rejects(finish(begun), /has ended/)
  })

  it('shows nothing of an attempt in its cookie', async (t) => {
    const { begin } = await setup(t)
    const { asked, cookie } = await begin({ back: '/approvals/a1' })
    const text = Buffer.from(cookie.split('.')[1] ?? '', 'base64url').toString('latin1')
    for (const part of [asked.get('state'), asked.get('nonce'), 'approvals']) assert.ok(part && !text.includes(part))
  })

  it('knows when the person has shown who they are, and takes no other time for it', async (t) => {
    const { begin, finish, pass, login } = await setup(t)
    pass(100_000)
    const at = async (claims: Record<string, unknown>) => (await finish(await begin(), claims)).loginAtMs
    assert.equal(await at({ auth_time: 40 }), 40_000)
    assert.equal(await at({ auth_time: 120 }), 100_000)
    for (const unknown of [undefined, '40', null]) assert.equal(await at({ auth_time: unknown }), 0)
    const { url } = await login.begin({ back: '/', isFresh: true })
    assert.equal(new URL(url).searchParams.get('prompt'), 'login')
    assert.ok((await begin()).asked.has('max_age'))
  })
})
