import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { discover } from './discovery.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { ConnectProblem } from './problem.ts'

const SERVER = 'https://mail.example.com/a/mcp'
const ISSUER = 'https://login.example.com'
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/auth`,
  token_endpoint: `${ISSUER}/token`,
  code_challenge_methods_supported: ['S256'],
}
const RESOURCE = { resource: SERVER, authorization_servers: [ISSUER] }
const OF_PATH = 'https://mail.example.com/.well-known/oauth-protected-resource/a/mcp'
const OF_SERVER = `${ISSUER}/.well-known/oauth-authorization-server`

type Answers = Readonly<Record<string, object | number | string>>

/** A server and its authorization server, as the URLs that they answer at. A text is the challenge of a 401. */
function world(answers: Answers) {
  const asked: string[] = []
  const fetch: GuardedFetch = async (url, init = {}) => {
    asked.push(url)
    assert.equal(init.headers?.['authorization'], undefined)
    const answer = answers[url] ?? 404
    if (typeof answer === 'number') return new Response(null, { status: answer })
    if (typeof answer === 'string') return new Response(null, { status: 401, headers: { 'www-authenticate': answer } })
    return Response.json(answer)
  }
  return { asked, discover: (configured: object = {}) => discover(new URL(SERVER), configured, fetch) }
}

const GOOD: Answers = { [OF_PATH]: RESOURCE, [OF_SERVER]: METADATA }

describe('discover', () => {
  it('reads the metadata that the 401 names, and asks for the scope of its challenge', async () => {
    const named = 'https://mail.example.com/metadata'
    const challenge = `Basic realm="x", Bearer error="invalid_token", resource_metadata="${named}", scope="read write"`
    const { discover: run, asked } = world({ ...GOOD, [SERVER]: challenge, [named]: RESOURCE })
    const found = await run()
    assert.equal(found.resource, SERVER)
    assert.equal(found.server.token_endpoint, `${ISSUER}/token`)
    assert.deepEqual(found.scopes, ['read', 'write'])
    assert.deepEqual(asked, [SERVER, named, OF_SERVER])
  })

  it('looks at the well-known places where the answer names none: of the path, then of the origin', async () => {
    const root = 'https://mail.example.com/.well-known/oauth-protected-resource'
    const { discover: run, asked } = world({
      [root]: { ...RESOURCE, resource: 'https://mail.example.com/', scopes_supported: ['all'] },
      [`${ISSUER}/.well-known/openid-configuration`]: { ...METADATA, scopes_supported: ['offline_access'] },
    })
    const found = await run()
    assert.deepEqual(asked.slice(1, 3), [OF_PATH, root])
    assert.equal(found.resource, 'https://mail.example.com/')
    assert.deepEqual(found.scopes, ['all', 'offline_access'])
    assert.deepEqual((await run({ scopes: ['one'] })).scopes, ['one'])
  })

  it('takes the issuer of the configuration before the one that the server names', async () => {
    const own = 'https://own.example.com'
    const answers = { [`${own}/.well-known/oauth-authorization-server`]: { ...METADATA, issuer: own } }
    assert.equal((await world({ ...GOOD, ...answers }).discover({ issuer: own })).server.issuer, own)
    const without = await world(answers).discover({ issuer: own })
    assert.equal(without.resource, SERVER)
  })

  const refused: readonly (readonly [string, Answers, RegExp])[] = [
    [
      'metadata at another origin',
      { ...GOOD, [SERVER]: 'Bearer resource_metadata="https://evil.example/x"' },
      /another origin/,
    ],
    [
      'metadata of another resource',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, resource: 'https://evil.example/a/mcp' } },
      /without metadata of this server/,
    ],
    [
      'metadata of another path',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, resource: 'https://mail.example.com/a/m' } },
      /without metadata of this server/,
    ],
    ['metadata that is none', { ...GOOD, [OF_PATH]: 500 }, /answered 500/],
    ['no metadata and no issuer', { [OF_SERVER]: METADATA }, /name its "issuer"/],
    [
      'an issuer without TLS',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, authorization_servers: ['http://login.example.com'] } },
      /not an https URL/,
    ],
    ['an issuer without metadata', { [OF_PATH]: RESOURCE }, /has no metadata/],
    [
      'metadata of another issuer',
      { ...GOOD, [OF_SERVER]: { ...METADATA, issuer: 'https://evil.example' } },
      /is not the metadata of/,
    ],
    [
      'a page without TLS',
      { ...GOOD, [OF_SERVER]: { ...METADATA, authorization_endpoint: 'http://login.example.com/' } },
      /no page at an https URL/,
    ],
    [
      'a page that is a script',
      { ...GOOD, [OF_SERVER]: { ...METADATA, authorization_endpoint: 'javascript:alert(1)' } },
      /no page at an https URL/,
    ],
    [
      'PKCE that is not announced',
      { ...GOOD, [OF_SERVER]: { ...METADATA, code_challenge_methods_supported: ['plain'] } },
      /PKCE with S256/,
    ],
  ]
  for (const [what, answers, text] of refused)
    it(`refuses ${what}`, async () => {
      await assert.rejects(
        world(answers).discover(),
        (error) => error instanceof ConnectProblem && text.test(error.message),
      )
    })
})
