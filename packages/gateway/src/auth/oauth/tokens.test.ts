import assert from 'node:assert/strict'
import { createHmac, hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { type CryptoKey, exportSPKI, generateKeyPair, importJWK } from 'jose'
import type { IssuerConfig } from '../../config/oauth.ts'
import { type Credential, isRefused, type Refusal } from '../credential.ts'
import { json, PUBLIC_URL, startIssuer, type TestIssuer } from '../../testing/oauth.ts'
import { TokenRefusals } from './refusals.ts'
import type { TokenReason } from './token-problem.ts'
import { Tokens, type TokensDeps } from './tokens.ts'

/** A gateway's tokens and an issuer. Time stands still at 0. */
async function setup(t: TestContext, given: Partial<IssuerConfig> = {}) {
  const issuer = await startIssuer(t, given)
  return { issuer, ...open([issuer]) }
}

function open(issuers: readonly TestIssuer[], given: Partial<TokensDeps> = {}) {
  let nowMs = 0
  const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
  const configs = issuers.map(({ config }) => config)
  const refusals = new TokenRefusals(clock, () => {})
  const deps = { clock, publicUrl: PUBLIC_URL, refusals, ...given }
  const tokens = new Tokens({ issuers: configs, scopes: [], stepUp: [] }, deps)
  const ask = (token: string, resource = '/mcp') =>
    tokens.find({ token, digest: hash('sha256', token, 'base64') }, resource)
  return {
    tokens,
    refusals,
    ask,
    /** Returns the credential of a token that must be accepted. */
    async accept(token: string, resource?: string): Promise<Credential> {
      const answer = await ask(token, resource)
      assert.ok(answer && !isRefused(answer), JSON.stringify(answer))
      return answer
    },
    /** Returns why a token is refused. */
    async refuse(token: string, resource?: string): Promise<Refusal> {
      const answer = await ask(token, resource)
      assert.ok(answer && isRefused(answer), 'the token was accepted')
      return answer
    },
    pass(ms: number) {
      nowMs += ms
    },
  }
}

describe('Tokens', () => {
  it('translates the values of a claim into roles, and brings no others', async (t) => {
    const roles = new Map([['5f3c', ['admin', 'user']]])
    const { issuer, accept } = await setup(t, { claims: { user: 'sub', roles: 'groups' }, roles })
    const of = async (groups: unknown) => (await accept(await issuer.sign({ groups }))).caller.roles
    assert.deepEqual(await of(['5f3c', 'admin', 'other', 'constructor']), ['admin', 'user'])
    assert.deepEqual(await of(['admin']), [])
  })

  it('refuses a token whose roles are elsewhere, whatever the name of the claim', async (t) => {
    for (const roles of ['groups', 'https://acme.com/groups', 'realm.access.roles']) {
      const { issuer, accept, refuse } = await setup(t, { claims: { user: 'sub', roles } })
      const name = roles.startsWith('realm') ? 'realm.access' : roles
      const { detail } = await refuse(await issuer.sign({ _claim_names: { [name]: 'src1' } }))
      assert.match(detail ?? '', /too many groups/, roles)
      await accept(await issuer.sign({ _claim_names: { other: 'src1' } }))
    }
  })

  it('keeps what people call the user as a label, which is no part of the caller', async (t) => {
    const { issuer, accept } = await setup(t)
    const named = async (claims: object) => {
      const { label, caller } = await accept(await issuer.sign({ ...claims }))
      assert.equal(caller.user, 'corp/vera')
      return label
    }
    assert.equal(await named({ name: 'Vera V', preferred_username: 'vera', email: 'v@acme.com' }), 'Vera V')
    assert.equal(await named({ preferred_username: 'vera' }), 'vera')
    assert.equal(await named({ name: 7, email: 'v@acme.com' }), 'v@acme.com')
    assert.equal(await named({ name: 'x'.repeat(300) }), undefined)
  })

  it('accepts no token before it knows who was logged out, and drops the tokens of those', async (t) => {
    const issuer = await startIssuer(t)
    const ended = new Set<string | undefined>()
    const logouts = { isRead: false, hasEnded: (_issuer: string, { sid }: { sid?: string }) => ended.has(sid) }
    const { tokens, ask, accept, refuse, refusals } = open([issuer], { logouts })
    const [one, two] = [await issuer.sign({ sid: '1' }), await issuer.sign({ sid: '2', client_id: 'other' })]
    const again = await issuer.sign({ sid: '3' })
    assert.deepEqual(await refuse(one), {
      refused: 'unavailable',
      reason: 'issuer_down',
      detail: 'the logouts of the issuer are not known yet',
    })
    logouts.isRead = true
    const { caller } = await accept(one)
    await accept(two)
    await accept(again)
    ended.add('1')
    // The caller has another token.
    assert.deepEqual(tokens.dropLoggedOut(), [])
    ended.add('3')
    assert.deepEqual(tokens.dropLoggedOut(), [caller])
    assert.deepEqual(tokens.dropLoggedOut(), [])
    await refuse(one)
    assert.ok(!isRefused((await ask(two)) as Credential))
    assert.equal(refusals.list.find(({ reason }) => reason === 'logged_out')?.count, 1)
  })

  it('makes a caller of a verified token, and does not ask the issuer when it sees the token again', async (t) => {
    const { issuer, accept, ask } = await setup(t)
    const token = await issuer.sign({ scope: 'tools tools:write' })
    const credential = await accept(token)
    assert.deepEqual(credential.caller, {
      user: 'corp/vera',
      roles: [],
      scopes: ['tools', 'tools:write'],
      client: 'app',
    })
    assert.deepEqual(
      [credential.for, credential.issuer, credential.client, credential.expiresAtMs],
      ['mcp', issuer.issuer, 'app', 630_000],
    )
    assert.equal(await ask(token), credential)
    assert.equal(issuer.asked['/jwks'], 1)
  })

  it('keeps the id and the caller of a user and client when their token is refreshed', async (t) => {
    const { issuer, accept, tokens } = await setup(t)
    const [first, second] = [await accept(await issuer.sign()), await accept(await issuer.sign({ exp: 700 }))]
    assert.equal(first.id, second.id)
    assert.equal(first.caller, second.caller)
    assert.equal(tokens.current(first.id), second)
    assert.notEqual((await accept(await issuer.sign({ client_id: 'other' }))).id, first.id)
  })

  it('never gives a request the rights of another token of its user and client', async (t) => {
    const { issuer, accept, tokens, pass } = await setup(t)
    const [narrow, wide] = [
      await accept(await issuer.sign({ scope: 'read' })),
      await accept(await issuer.sign({ scope: 'read admin', exp: 60 })),
    ]
    assert.equal(narrow.id, wide.id)
    assert.equal(tokens.renewed(narrow), narrow)
    assert.equal(tokens.renewed(wide), wide)
    pass(100_000)
    assert.equal(tokens.renewed(narrow), narrow)
    assert.equal(tokens.renewed(wide), undefined)
  })

  it('goes on with the token that was used last, where there is no request', async (t) => {
    const { issuer, accept, tokens, pass } = await setup(t)
    const token = await issuer.sign({ scope: 'read' })
    const long = await accept(token)
    const brief = await accept(await issuer.sign({ scope: 'read admin', exp: 60 }))
    assert.equal(tokens.current(long.id), brief)
    pass(100_000)
    await accept(token)
    assert.equal(tokens.current(long.id), long)
  })

  it('knows no token of another issuer, and no text that is no token', async (t) => {
    const { issuer, ask, refusals } = await setup(t)
    assert.equal(await ask(await issuer.sign({ iss: 'https://other.example.com' })), undefined)
    assert.equal(await ask(await issuer.sign({ iss: undefined })), undefined)
    for (const text of ['demo-viewer', 'a.b', 'a.b.c.d', `${'a'.repeat(9000)}.b.c`])
      assert.equal(await ask(text), undefined)
    assert.deepEqual(refusals.list, [{ issuer: 'unknown', reason: 'issuer', count: 2 }])
  })

  describe('refuses', () => {
    const cases: readonly [TokenReason, string, (issuer: TestIssuer) => Promise<string>][] = [
      ['audience', 'a token for another audience', (one) => one.sign({ aud: 'https://other.example.com/mcp' })],
      ['audience', 'a token for the whole gateway', (one) => one.sign({ aud: PUBLIC_URL })],
      ['audience', 'a token for an endpoint with a longer name', (one) => one.sign({ aud: `${PUBLIC_URL}/mcp2` })],
      ['audience', 'a token with another spelling of the audience', (one) => one.sign({ aud: `${PUBLIC_URL}/mcp/` })],
      ['audience', 'a token without an audience', (one) => one.sign({ aud: undefined })],
      ['expired', 'an expired token', (one) => one.sign({ exp: -31, iat: -600 })],
      ['claims', 'a token without an end', (one) => one.sign({ exp: undefined })],
      ['early', 'a token that is not valid yet', (one) => one.sign({ nbf: 31 })],
      ['early', 'a token from the future', (one) => one.sign({ iat: 31 })],
      ['bound', 'a token that is bound to a key', (one) => one.sign({ cnf: { jkt: 'x' } })],
      ['algorithm', 'a token without a signature', (one) => unsigned(one, { alg: 'none' })],
      ['algorithm', 'a signature that claims to be none', (one) => unsigned(one, { alg: 'None' })],
      ['algorithm', 'a token that is signed with the public key as a secret', confused],
      [
        'signature',
        'a token of another key',
        async (one) => one.sign({}, {}, { key: (await generateKeyPair('ES256')).privateKey }),
      ],
      ['signature', 'a token with a key of its own in the header', withOwnKey],
      [
        'signature',
        'a token with a changed claim',
        async (one) => (await one.sign()).replace(/\.[^.]+\./, `.${claimsOf(one)}.`),
      ],
      ['kind', 'an ID token by its nonce', (one) => one.sign({ nonce: 'n' }, { typ: 'JWT' })],
      ['kind', 'an ID token by its at_hash', (one) => one.sign({ at_hash: 'h' }, { typ: undefined })],
      ['kind', 'an ID token by its audience', (one) => one.sign({ aud: [`${PUBLIC_URL}/mcp`, 'app'] }, { typ: 'JWT' })],
      ['kind', 'an ID token of Cognito', (one) => one.sign({ token_use: 'id' }, { typ: 'JWT' })],
      ['kind', 'an ID token of Keycloak', (one) => one.sign({ typ: 'ID' }, { typ: 'JWT' })],
      ['kind', 'a logout token', (one) => one.sign({ events: {} }, { typ: 'JWT' })],
      ['kind', 'a token of another type', (one) => one.sign({}, { typ: 'dpop+jwt' })],
      ['malformed', 'a header with a critical extension', (one) => one.sign({}, { crit: ['x'], x: 1 })],
      ['claims', 'a token without user and client', (one) => one.sign({ sub: undefined, client_id: undefined })],
      ['claims', 'a user that is no text', (one) => one.sign({ sub: 7 })],
      ['claims', 'a user that is too long', (one) => one.sign({ sub: 'x'.repeat(257) })],
      ['claims', 'scopes that are no list', (one) => one.sign({ scope: { tools: true } })],
      [
        'claims',
        'too many scopes',
        (one) => one.sign({ scope: Array.from({ length: 257 }, (_, i) => `s${i}`).join(' ') }),
      ],
      ['claims', 'an actor without a name', (one) => one.sign({ act: {} })],
      ['claims', 'an actor that is a text', (one) => one.sign({ act: 'agent' })],
      ['claims', 'a chain of actors that is too long', (one) => one.sign({ act: nested(9) })],
    ]
    for (const [reason, what, make] of cases)
      it(what, async (t) => {
        const { issuer, accept, refuse, refusals } = await setup(t)
        await accept(await issuer.sign())
        assert.equal((await refuse(await make(issuer))).refused, 'unknown')
        assert.deepEqual(refusals.list, [{ issuer: reason === 'malformed' ? 'unknown' : 'corp', reason, count: 1 }])
      })
  })

  it('takes only the algorithms that the file names', async (t) => {
    const { issuer, refuse } = await setup(t, { algorithms: ['RS256'] })
    assert.match((await refuse(await issuer.sign())).detail ?? '', /alg/)
  })

  it('takes JWTs of issuers that name no type', async (t) => {
    const { issuer, accept } = await setup(t)
    for (const typ of ['JWT', 'jwt', 'application/at+jwt', undefined])
      await accept(await issuer.sign({ jti: String(typ) }, { typ }))
  })

  it('allows for a clock that is off, and no more', async (t) => {
    const { issuer, accept, refuse, pass } = await setup(t)
    const token = await issuer.sign({ nbf: 29, iat: 29 })
    await accept(token)
    pass(629_999)
    await accept(token)
    pass(1)
    assert.match((await refuse(token)).detail ?? '', /exp/)
    const strict = await setup(t, { clockSkewMs: 0 })
    await strict.refuse(await strict.issuer.sign({ nbf: 1 }))
  })

  it('keeps a token expired once that was seen, when the clock goes back', async (t) => {
    const { issuer, accept, refuse, pass, tokens } = await setup(t)
    const [known, seen, never, later] = await Promise.all(
      ['a', 'b', 'c', 'd'].map((jti) => issuer.sign({ jti, sub: jti, ...(jti === 'd' && { exp: 9000 }) })),
    )
    const { id } = await accept(known ?? '')
    await accept(seen ?? '')
    pass(630_000)
    assert.equal(tokens.current(id), undefined)
    await refuse(seen ?? '')
    await refuse(never ?? '')
    pass(-630_000)
    assert.equal(tokens.current(id), undefined)
    for (const token of [known, seen, never]) assert.match((await refuse(token ?? '')).detail ?? '', /exp/)
    await accept(later ?? '')
    await accept(await issuer.sign({ jti: 'e', sub: 'a' }))
  })

  it('opens the endpoint that the token is for, and every one for a listed audience', async (t) => {
    const { issuer, accept, refuse } = await setup(t, { audiences: ['api://tools'] })
    const forApp = await issuer.sign({ aud: [`${PUBLIC_URL}/mcp/research`, 'https://else.example.com'] })
    await accept(forApp, '/mcp/research')
    for (const other of ['/mcp', '/mcp/desk', '/api']) await refuse(forApp, other)
    const listed = await issuer.sign({ aud: 'api://tools' })
    for (const path of ['/mcp', '/mcp/research']) await accept(listed, path)
  })

  it('never makes one user of two issuers, or of a user and a client', async (t) => {
    const one = await startIssuer(t)
    const other = await startIssuer(t, { name: 'partner' })
    const { accept } = open([one, other])
    const userOf = async (issuer: TestIssuer, claims: Record<string, unknown>) =>
      (await accept(await issuer.sign(claims))).caller.user
    const users = [
      await userOf(one, { sub: 'a' }),
      await userOf(other, { sub: 'a' }),
      await userOf(one, { sub: 'client/a' }),
      await userOf(one, { sub: undefined, client_id: 'a' }),
      await userOf(other, { sub: 'a', client_id: 'a' }),
    ]
    assert.deepEqual(users, ['corp/a', 'partner/a', 'corp/client/a', 'corp:client/a', 'partner:client/a'])
  })

  it('reads user, roles, scopes and tenant from the claims that the file names', async (t) => {
    const { issuer, accept, refuse } = await setup(t, {
      claims: { user: 'email', roles: 'realm_access.roles', scopes: 'https://example.com/scopes', tenant: 'org' },
      users: new Map([['vera@example.com', 'vera']]),
    })
    const claims = {
      email: 'vera@example.com',
      realm_access: { roles: ['editor', 'admin'] },
      'https://example.com/scopes': ['b', 'a'],
      org: 'acme',
    }
    assert.deepEqual((await accept(await issuer.sign(claims))).caller, {
      user: 'vera',
      tenant: 'acme',
      roles: ['admin', 'editor'],
      scopes: ['a', 'b'],
      client: 'app',
      aliases: ['corp/vera', 'corp/vera@example.com'],
    })
    // Without its tenant, the caller would be nobody's.
    assert.match((await refuse(await issuer.sign({ ...claims, org: undefined }))).detail ?? '', /org/)
    for (const name of ['__proto__', 'constructor.name', 'toString'])
      assert.equal(
        (
          await setup(t, { claims: { user: 'sub', tenant: name } }).then(async (other) =>
            other.refuse(await other.issuer.sign()),
          )
        ).refused,
        'unknown',
      )
  })

  it('takes a text for one role, as groups have names with spaces, and nothing else for roles', async (t) => {
    const { issuer, accept, refuse } = await setup(t, { claims: { user: 'sub', roles: 'groups' } })
    assert.deepEqual((await accept(await issuer.sign({ groups: 'Former admin' }))).caller.roles, ['Former admin'])
    for (const groups of [{ admin: true }, [['admin']], [{ name: 'admin' }], 1, true, null, ''])
      assert.match((await refuse(await issuer.sign({ groups }))).detail ?? '', /groups/)
  })

  it('names the current actor, and keeps the whole chain', async (t) => {
    const one = await startIssuer(t)
    const other = await startIssuer(t, { name: 'partner' })
    const { accept } = open([one, other])
    const act = { sub: 'assistant', act: { sub: 'broker', iss: other.issuer, act: { client_id: 'portal' } } }
    const { caller } = await accept(await one.sign({ act }))
    assert.equal(caller.actor, 'corp/assistant')
    assert.deepEqual(caller.actChain, ['corp/assistant', 'partner/broker', 'corp:client/portal'])
    assert.equal((await accept(await one.sign({ act: nested(8) }))).caller.actChain?.length, 8)
  })

  describe('keys', () => {
    it('are read again once for an unknown key, and not at the will of a sender', async (t) => {
      const { issuer, accept, refuse, pass } = await setup(t)
      await accept(await issuer.sign())
      await issuer.rotate()
      const token = await issuer.sign()
      await refuse(token)
      pass(5_000)
      await accept(token)
      assert.equal(issuer.asked['/jwks'], 2)
      for (let i = 0; i < 5; i++) await refuse(await issuer.sign({ jti: `${i}` }, { kid: `wrong-${i}` }))
      assert.equal(issuer.asked['/jwks'], 2)
    })

    it('that are withdrawn end the tokens that they signed, also known ones', async (t) => {
      const { issuer, accept, ask, refuse, pass } = await setup(t)
      const token = await issuer.sign({ exp: 6000 })
      const { id } = await accept(token)
      await issuer.rotate()
      pass(600_000)
      // The look starts the reading, and still has the last known keys.
      await ask(token)
      await accept(await issuer.sign({ exp: 6000 }))
      await refuse(token)
      assert.equal(open([issuer]).tokens.current(id), undefined)
    })

    it('that are secret are never used', async (t) => {
      const { issuer, refuse } = await setup(t)
      const secret = { kty: 'oct', k: Buffer.from('secret').toString('base64url'), kid: 'shared', alg: 'HS256' }
      issuer.answers['/jwks'] = (_request, response) => json(response, { keys: [secret, issuer.publicKey] })
      const key = Buffer.from('secret')
      await refuse(await issuer.sign({}, { alg: 'HS256', kid: 'shared' }, { key }))
    })
  })

  describe('an issuer that is down', () => {
    it('leaves known tokens until they expire, and has new ones refused', async (t) => {
      const { issuer, accept, refuse, tokens, pass } = await setup(t)
      const known = await issuer.sign({ exp: 3600 })
      const unseen = await issuer.sign({ exp: 3600, jti: 'new' })
      await accept(known)
      assert.equal(tokens.issuers[0]?.status, 'up')
      await issuer.close()
      pass(601_000)
      assert.equal((await refuse(unseen)).refused, 'unavailable')
      assert.equal(tokens.issuers[0]?.status, 'down')
      await accept(known)
      pass(3_029_000)
      await refuse(known)
    })

    it('is asked again after a pause, and recovers', async (t) => {
      const { issuer, accept, refuse, tokens, pass } = await setup(t)
      issuer.answers['/jwks'] = (_request, response) => void response.writeHead(503).end()
      const token = await issuer.sign()
      await refuse(token)
      await refuse(token)
      assert.equal(issuer.asked['/jwks'], 1)
      assert.match(tokens.issuers[0]?.problem ?? '', /answered 503/)
      issuer.answers = {}
      pass(5_000)
      await accept(token)
      assert.equal(tokens.issuers[0]?.status, 'up')
    })
  })

  describe('metadata', () => {
    const METADATA = '/.well-known/oauth-authorization-server'
    const lies: readonly [string, (issuer: TestIssuer) => unknown, RegExp][] = [
      ['that names another issuer', () => ({ issuer: 'https://evil.example.com', jwks_uri: 'x' }), /names the issuer/],
      [
        'with keys at a place that is not secure',
        (one) => ({ issuer: one.issuer, jwks_uri: 'http://10.0.0.1/k' }),
        /https/,
      ],
      ['without keys', (one) => ({ issuer: one.issuer }), /jwks_uri/],
      ['that is no object', () => [], /without a JSON object/],
      ['that is endless', (one) => ({ issuer: one.issuer, fill: 'x'.repeat(600_000) }), /more than 524288 bytes/],
    ]
    for (const [what, body, problem] of lies)
      it(`${what} is not used`, async (t) => {
        const { issuer, refuse, tokens } = await setup(t)
        issuer.answers[METADATA] = (_request, response) => json(response, body(issuer))
        assert.equal((await refuse(await issuer.sign())).refused, 'unavailable')
        assert.match(tokens.issuers[0]?.problem ?? '', problem)
      })

    it('is found past places that answer something else, whatever that is', async (t) => {
      const { issuer, accept, tokens, pass } = await setup(t)
      const answers: readonly ((response: ServerResponse) => void)[] = [
        ...[400, 401, 403, 405, 500, 302].map(
          (status) => (response: ServerResponse) => void response.writeHead(status).end(),
        ),
        (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>'),
        (response) => json(response, { issuer: 'https://evil.example.com', jwks_uri: 'https://evil.example.com/k' }),
        (response) => json(response, { issuer: issuer.issuer, jwks_uri: null }),
      ]
      issuer.answers['/.well-known/openid-configuration'] = (_request, response) =>
        json(response, { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/jwks`, end_session_endpoint: null })
      for (const answer of answers) {
        issuer.answers[METADATA] = (_request, response) => answer(response)
        pass(3_601_000)
        await accept(await issuer.sign({ iat: 0, exp: 1e9, jti: `${answers.indexOf(answer)}` }))
        assert.equal(tokens.issuers[0]?.status, 'up')
      }
    })

    it('is found at the place of OpenID Connect too, and follows no redirect', async (t) => {
      const { issuer, accept, refuse, pass } = await setup(t)
      issuer.answers[METADATA] = (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end()
      const token = await issuer.sign()
      await refuse(token)
      assert.equal(issuer.asked['/elsewhere'], undefined)
      issuer.answers[METADATA] = (_request, response) => void response.writeHead(404).end()
      issuer.answers['/.well-known/openid-configuration'] = (_request, response) =>
        json(response, { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/jwks` })
      pass(5_000)
      await accept(token)
    })
  })

  describe('introspection', () => {
    const introspection = { clientId: 'gateway', clientSecret: 's:cret', tokens: 'always', cacheMs: 30_000 } as const

    it('opens for opaque tokens, with the claims of the answer', async (t) => {
      const { issuer, accept, ask, refuse } = await setup(t, { introspection: { ...introspection, tokens: 'opaque' } })
      const claims = { active: true, sub: 'vera', client_id: 'app', scope: 'tools', aud: `${PUBLIC_URL}/mcp`, exp: 600 }
      issuer.active = {
        good: claims,
        other: { ...claims, aud: 'https://other.example.com' },
        homeless: { ...claims, aud: undefined },
        expired: { ...claims, exp: -31 },
        bound: { ...claims, cnf: { jkt: 'x' } },
        foreign: { ...claims, iss: 'https://other.example.com' },
      }
      const credential = await accept('good')
      assert.deepEqual([credential.caller.user, credential.caller.scopes], ['corp/vera', ['tools']])
      assert.equal(await ask('good'), credential)
      for (const token of ['other', 'homeless', 'expired', 'bound', 'foreign', 'unknown'])
        assert.equal((await refuse(token)).refused, 'unknown', token)
      await refuse('unknown')
      assert.equal(issuer.asked['/introspect'], 7)
    })

    it('ends a revoked token within the time of one answer', async (t) => {
      const { issuer, accept, refuse, tokens, pass } = await setup(t, { introspection })
      const token = await issuer.sign()
      issuer.active[token] = { active: true }
      const { id } = await accept(token)
      issuer.active = {}
      pass(29_999)
      await accept(token)
      assert.equal(issuer.asked['/introspect'], 1)
      pass(1)
      await refuse(token)
      assert.equal(tokens.current(id), undefined)
    })

    it('ends a revoked token also while many unknown ones are asked about', async (t) => {
      const { issuer, ask, accept, refuse, pass } = await setup(t, { introspection })
      const token = await issuer.sign()
      issuer.active[token] = { active: true }
      await accept(token)
      const held: (() => void)[] = []
      issuer.answers['/introspect'] = (request, response) =>
        void readText(request).then((body) => {
          const answer = () => json(response, { active: false })
          if (body.includes('flood')) held.push(answer)
          else answer()
        })
      const flood = Array.from({ length: 60 }, (_, i) => ask(`flood-${i}`))
      pass(30_000)
      assert.equal((await refuse(token)).refused, 'unknown')
      issuer.answers['/introspect'] = (_request, response) => json(response, { active: false })
      for (const answer of held) answer()
      for (const refused of flood) await refused
    })

    it('that fails leaves known tokens until they expire, and has new ones refused', async (t) => {
      const { issuer, accept, refuse, pass } = await setup(t, { introspection })
      const [known, unseen] = [await issuer.sign(), await issuer.sign({ jti: 'new' })]
      issuer.active = { [known]: { active: true }, [unseen]: { active: true } }
      await accept(known)
      issuer.answers['/introspect'] = (_request, response) => void response.writeHead(500).end()
      pass(30_000)
      await accept(known)
      assert.equal((await refuse(unseen)).refused, 'unavailable')
      pass(600_000)
      await refuse(known)
    })

    it('authenticates as its own client', async (t) => {
      const { issuer, refuse } = await setup(t, { introspection: { ...introspection, tokens: 'opaque' } })
      let sent: string | undefined
      issuer.answers['/introspect'] = (request, response) => {
        sent = request.headers.authorization
        json(response, { active: false })
      }
      await refuse('opaque')
      assert.equal(sent, `Basic ${Buffer.from('gateway:s%3Acret').toString('base64')}`)
    })
  })
})

async function unsigned(issuer: TestIssuer, header: { readonly alg: string }): Promise<string> {
  const [, claims] = (await issuer.sign()).split('.')
  return `${toPart({ ...header, typ: 'at+jwt' })}.${claims}.`
}

/** RFC 8725 §2.1: HS256 with the text of the public key as its secret. */
async function confused(issuer: TestIssuer): Promise<string> {
  const pem = await exportSPKI((await importJWK({ ...issuer.publicKey }, 'ES256')) as CryptoKey)
  const [, claims] = (await issuer.sign()).split('.')
  const signed = `${toPart({ alg: 'HS256', typ: 'at+jwt', kid: issuer.publicKey.kid })}.${claims}`
  return `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`
}

async function withOwnKey(issuer: TestIssuer): Promise<string> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await crypto.subtle.exportKey('jwk', publicKey)
  return issuer.sign({}, { jwk: jwk as never }, { key: privateKey })
}

function claimsOf({ issuer }: TestIssuer): string {
  return toPart({ iss: issuer, aud: `${PUBLIC_URL}/mcp`, sub: 'admin', client_id: 'app', iat: 0, exp: 600 })
}

function toPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function nested(depth: number): object {
  return depth === 1 ? { sub: 'first' } : { sub: `actor${depth}`, act: nested(depth - 1) }
}
