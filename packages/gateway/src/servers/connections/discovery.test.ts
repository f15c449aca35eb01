import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { discover, readServer } from './discovery.ts'
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
const ROOT = 'https://mail.example.com/.well-known/oauth-protected-resource'
const OF_SERVER = `${ISSUER}/.well-known/oauth-authorization-server`

/** A number is a status, a text the challenge of a 401 (or a page), an object a document. */
type Answers = Readonly<Record<string, object | number | string>>

/** A server and its authorization server, as the URLs that they answer at. */
function world(answers: Answers) {
  const asked: string[] = []
  const fetch: GuardedFetch = async (url, init = {}) => {
    asked.push(url)
    assert.equal(init.headers?.['authorization'], undefined)
    const answer = answers[url] ?? 404
    if (typeof answer === 'number') return new Response(null, { status: answer })
    if (answer === 'page') return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } })
    if (typeof answer === 'string') return new Response(null, { status: 401, headers: { 'www-authenticate': answer } })
    return Response.json(answer)
  }
  return {
    asked,
    fetch,
    discover: (configured: object = {}) => discover({ name: 'mail', url: SERVER, oauth: configured }, fetch),
  }
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

  it('reads a place that the 401 names without its origin', async () => {
    const { discover: run, asked } = world({
      [OF_SERVER]: METADATA,
      [SERVER]: 'Bearer resource_metadata="/metadata"',
      'https://mail.example.com/metadata': RESOURCE,
    })
    assert.equal((await run()).resource, SERVER)
    assert.equal(asked[1], 'https://mail.example.com/metadata')
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

  it('takes the first authorization server that can be used, and names the problem of each', async () => {
    const resource = { ...RESOURCE, authorization_servers: ['https://gone.example.com', 7, ISSUER] }
    const { discover: run } = world({ ...GOOD, [OF_PATH]: resource })
    assert.equal((await run()).server.issuer, ISSUER)
    const { discover: none } = world({ [OF_PATH]: resource })
    await assert.rejects(none(), ({ message }: Error) => {
      for (const issuer of ['https://gone.example.com', ISSUER])
        assert.ok(message.includes(`no place has the metadata of ${issuer}`), message)
      return true
    })
  })

  it('takes the issuer of the configuration before the one that the server names', async () => {
    const own = 'https://own.example.com'
    const answers = { [`${own}/.well-known/oauth-authorization-server`]: { ...METADATA, issuer: own } }
    assert.equal((await world({ ...GOOD, ...answers }).discover({ issuer: own })).server.issuer, own)
    const without = await world(answers).discover({ issuer: own })
    assert.equal(without.resource, SERVER)
  })

  it('skips each place without metadata of this server, whatever it answers', async () => {
    const named = 'https://mail.example.com/metadata'
    const page = 'page'
    for (const answer of [
      400,
      401,
      403,
      404,
      405,
      500,
      302,
      page,
      [],
      { resource: null },
      { resource: 'https://evil.example/a/mcp' },
    ]) {
      const answers = {
        [SERVER]: `Bearer resource_metadata="${named}"`,
        [named]: answer,
        [OF_PATH]: answer,
        [ROOT]: { ...RESOURCE, resource: 'https://mail.example.com' },
        [OF_SERVER]:
          answer === page
            ? page
            : typeof answer === 'number'
              ? answer
              : { ...METADATA, issuer: 'https://evil.example' },
        [`${ISSUER}/.well-known/openid-configuration`]: METADATA,
      }
      const { discover: run, asked } = world(answers)
      assert.equal((await run()).resource, 'https://mail.example.com')
      assert.deepEqual(asked.slice(1, 4), [named, OF_PATH, ROOT])
    }
  })

  it('never asks for metadata of the resource at another origin, and looks at its own places', async () => {
    const { discover: run, asked } = world({ ...GOOD, [SERVER]: 'Bearer resource_metadata="https://evil.example/x"' })
    assert.equal((await run()).resource, SERVER)
    assert.ok(asked.every((place) => !place.startsWith('https://evil.example')))
  })

  it('takes the origin of a server without metadata as its issuer, as in MCP 2025-03-26', async () => {
    const own = 'https://mail.example.com'
    const { discover: run } = world({ [`${own}/.well-known/oauth-authorization-server`]: { ...METADATA, issuer: own } })
    assert.equal((await run()).server.issuer, own)
  })

  it('looks for an issuer with a path at each of its four places', async () => {
    const issuer = `${ISSUER}/a`
    const places = [
      `${ISSUER}/.well-known/oauth-authorization-server/a`,
      `${ISSUER}/.well-known/openid-configuration/a`,
      `${ISSUER}/a/.well-known/openid-configuration`,
      `${ISSUER}/a/.well-known/oauth-authorization-server`,
    ]
    for (const place of places)
      assert.equal((await world({ [place]: { ...METADATA, issuer } }).discover({ issuer })).server.issuer, issuer)
    const slash = world({ [places[0] as string]: { ...METADATA, issuer: `${issuer}/` } })
    await assert.rejects(slash.discover({ issuer }), /is not the metadata of https:\/\/login.example.com\/a, but of/)
  })

  it('takes null members as absent, and scopes as text or list', async () => {
    const server = { ...METADATA, registration_endpoint: null, scopes_supported: null }
    const resource = { ...RESOURCE, scopes_supported: 'read write', authorization_servers: ISSUER }
    const found = await world({ [OF_PATH]: resource, [OF_SERVER]: server }).discover()
    assert.equal('registration_endpoint' in found.server, false)
    assert.deepEqual(found.scopes, ['read', 'write'])
  })

  it('takes PKCE as announced only for the issuer that the operator vouches for', async () => {
    const { code_challenge_methods_supported: _, ...silent } = METADATA
    for (const server of [silent, { ...silent, code_challenge_methods_supported: null }]) {
      const silentWorld = world({ [OF_PATH]: RESOURCE, [OF_SERVER]: server })
      await assert.rejects(
        silentWorld.discover(),
        /servers\.mail\.oauth: \{ issuer: "https:\/\/login.example.com", pkce: S256 \}/,
      )
      assert.equal((await silentWorld.discover({ issuer: ISSUER, pkce: 'S256' })).server.issuer, ISSUER)
      await assert.rejects(silentWorld.discover({ pkce: 'S256' }), /does not announce PKCE/)
      const other = { name: 'mail', url: SERVER, oauth: { issuer: 'https://other.example.com', pkce: 'S256' as const } }
      await assert.rejects(readServer(ISSUER, other, silentWorld.fetch), /does not announce PKCE/)
    }
    for (const methods of [[], ['plain'], 'S256']) {
      const stated = { ...silent, code_challenge_methods_supported: methods }
      const run = world({ [OF_PATH]: RESOURCE, [OF_SERVER]: stated }).discover({ issuer: ISSUER, pkce: 'S256' })
      await assert.rejects(run, /announces PKCE without S256/)
    }
  })

  it('lists each place with its answer in the error', async () => {
    const error = await world({ [OF_PATH]: 401, [ROOT]: 405 })
      .discover()
      .catch((reason: unknown) => reason)
    assert.ok(error instanceof ConnectProblem)
    const { message } = error
    assert.match(message, /write servers\.mail\.oauth\.issuer: <url>/)
    for (const answer of [`${OF_PATH} answered 401`, `${ROOT} answered 405`, 'oauth-authorization-server answered 404'])
      assert.ok(message.includes(answer), message)
  })

  const refused: readonly (readonly [string, Answers, RegExp])[] = [
    [
      'metadata at another origin',
      { [OF_SERVER]: METADATA, [SERVER]: 'Bearer resource_metadata="https://evil.example/x"' },
      /is not of the server's own origin/,
    ],
    [
      'metadata of another resource',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, resource: 'https://evil.example/a/mcp' } },
      /has no metadata of this server/,
    ],
    [
      'metadata of another path',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, resource: 'https://mail.example.com/a/m' } },
      /has no metadata of this server/,
    ],
    ['metadata that is none', { ...GOOD, [OF_PATH]: 500 }, /answered 500/],
    ['no metadata and no issuer', { [OF_SERVER]: METADATA }, /write servers\.mail\.oauth\.issuer/],
    [
      'an issuer without TLS',
      { ...GOOD, [OF_PATH]: { ...RESOURCE, authorization_servers: ['http://login.example.com'] } },
      /not an https URL/,
    ],
    ['an issuer without metadata', { [OF_PATH]: RESOURCE }, /no place has the metadata of/],
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
      /PKCE without S256/,
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
