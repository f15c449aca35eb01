import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import type { MatrixBody } from '@toolgate/gateway'
import { type AuthorizationServer, startAuthorizationServer } from './support/authorization-server.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { OAuthMemory } from './support/oauth-memory.ts'
import { type Answer, send } from './support/http.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** OAuth 2.1 on a real gateway, with a real authorization server and real MCP clients. */

let upstream: RecordingServer
let login: AuthorizationServer
let gateway: TestGateway

before(async () => {
  upstream = await startRecordingServer(
    ['open', 'submit', 'remove'].map((name) => ({ name, description: `Does ${name}.` })),
  )
  login = await startAuthorizationServer({
    scopes: ['tools', 'tools:write', 'tools:admin'],
    clients: [BOT],
    claims: { omar: { act: { sub: 'assistant', act: { sub: 'broker' } } } },
  })
  gateway = await startTestGateway({
    servers: [
      {
        ...httpServer('up', upstream.url),
        tools: new Map([
          ['submit', { requiredScopes: ['tools:write', 'tools:admin'] }],
          ['remove', { requiredScopes: ['tools:write', 'tools:root'] }],
        ]),
      },
    ],
    oauth: {
      issuers: [
        {
          issuer: login.issuer,
          name: 'corp',
          audiences: [],
          algorithms: ['RS256'],
          clockSkewMs: 30_000,
          claims: { user: 'sub' },
          users: new Map(),
        },
      ],
      scopes: ['tools'],
      stepUp: ['tools:write', 'tools:admin'],
    },
  })
})

after(async () => {
  await gateway?.close()
  await login?.close()
  await upstream?.close()
})

const BOT = {
  client_id: 'bot',
  client_secret: 'secret-of-the-bot',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
}

/** Returns a token of the client itself. */
function botToken(scope: string, path = '/mcp'): Promise<string> {
  return login.clientToken(BOT.client_id, BOT.client_secret, { scope, resource: gateway.url + path })
}

/** Sends a request with a token. */
function ask(token: string, method: string, params: Params = {}, path = '/mcp'): Promise<Answer> {
  const { headers, body } = toMessage(MODERN, method, params)
  return send(gateway.url + path, {
    headers: { ...headers, authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  })
}

/** Returns the status of a call whose body comes after its token was checked, and after something else. */
function callSlowly(token: string, meanwhile: () => Promise<void>): Promise<number | undefined> {
  const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'up__submit', arguments: {} })
  return new Promise((resolve, reject) => {
    const expecting = { ...headers, authorization: `Bearer ${token}`, expect: '100-continue' }
    const sent = request(`${gateway.url}/mcp`, { method: 'POST', agent: false, headers: expecting }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.once('continue', () => void meanwhile().then(() => sent.end(JSON.stringify(body)), reject))
    sent.flushHeaders()
  })
}

async function namesOf(token: string): Promise<readonly string[]> {
  const { result } = (await ask(token, 'tools/list')).json() as RpcAnswer
  return (result?.tools ?? []).map(({ name }) => name)
}

/** Connects as a client that knows nothing but the URL. */
async function connect(memory: OAuthMemory, path = '/mcp'): Promise<Client> {
  const open = async () => {
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(gateway.url + path), { authProvider: memory })
    return { client, transport }
  }
  const first = await open()
  await assert.rejects(first.client.connect(first.transport), UnauthorizedError)
  const back = await login.open(memory.visited as URL)
  await first.transport.finishAuth(back.searchParams)
  const second = await open()
  await second.client.connect(second.transport)
  return second.client
}

describe('a client that knows only the URL', () => {
  it('finds the authorization server from a bare 401, gets a token and calls a tool', async () => {
    const memory = new OAuthMemory()
    const client = await connect(memory)
    const { content } = await client.callTool({ name: 'up__open', arguments: {} })
    assert.ok(content)
    await client.close()
    const [record] = ((await gateway.api('/api/audit?limit=1')).body as { records: { user_id?: string }[] }).records
    assert.equal(record?.user_id, 'corp/vera')
  })
})

describe('a person who signed in', () => {
  const asVera = `as=${encodeURIComponent('corp/vera')}`

  it('is found by name in calls, the audit, runs, approvals and the matrix', async () => {
    const found = async (path: string, list: string) => {
      const { status, body } = await gateway.api(path)
      assert.equal(status, 200, path)
      return ((body as Record<string, readonly object[]>)[list] ?? []).length
    }
    const user = encodeURIComponent('corp/vera')
    for (const [path, list] of [
      ['audit', 'records'],
      ['calls', 'calls'],
    ] as const) {
      assert.ok((await found(`/api/${path}?user=${user}`, list)) > 0, path)
      assert.equal(await found(`/api/${path}?user=corp/nobody`, list), 0, path)
    }
    for (const path of ['runs', 'approvals']) assert.equal(await found(`/api/${path}?user=corp/nobody`, path), 0)
    const matrix = async (query: string) => (await gateway.api(`/api/matrix?${query}`)).body as MatrixBody
    const { columns, people } = await matrix('text=corp/ver')
    assert.deepEqual([people, columns.map(({ names }) => names)], [1, [['corp/vera']]])
    assert.equal((await matrix('text=corp/nobody')).people, 0)
    assert.equal((await matrix('role=none')).people, 0)
    const { people: everybody, columns: all } = await matrix('')
    assert.equal(
      all.reduce((sum, one) => sum + one.people, 0),
      everybody,
    )
  })

  it('can be named like a caller of the file, until they are forgotten', async () => {
    const why = await gateway.api(`/api/why?tool=up:open&${asVera}`)
    const { rolesFrom } = why.body as { rolesFrom?: { issuer: string } }
    assert.deepEqual([why.status, rolesFrom?.issuer], [200, login.issuer])
    const { people } = (await gateway.api('/api/people?text=corp/vera')).body as { people: Record<string, unknown>[] }
    assert.deepEqual(
      people.map(({ as, issuer, cameBy }) => [as, issuer, cameBy]),
      [['corp/vera', login.issuer, 'token']],
    )
    const forgotten = await gateway.api('/api/people?user=corp/vera', { method: 'DELETE' })
    assert.deepEqual([forgotten.status, forgotten.body], [200, { user: 'corp/vera', removed: 1 }])
    assert.equal((await gateway.api(`/api/why?tool=up:open&${asVera}`)).status, 404)
  })
})

describe('a client that acts for a user', () => {
  it('is on record with every actor', async () => {
    login.account = 'omar'
    const client = await connect(new OAuthMemory())
    await client.callTool({ name: 'up__open', arguments: {} })
    await client.close()
    const { records } = (await gateway.api('/api/audit?limit=1')).body as { records: Record<string, unknown>[] }
    assert.equal(records[0]?.['user_id'], 'corp/omar')
    assert.equal(records[0]?.['actor'], 'corp/assistant')
    assert.equal(records[0]?.['act_chain'], '["corp/assistant","corp/broker"]')
    assert.ok(records[0]?.['client'])
  })
})

describe('/readyz', () => {
  it('lists the issuers', async () => {
    const { body } = await gateway.api('/readyz')
    const row = { name: 'corp', issuer: login.issuer, status: 'up', reportsLogouts: true }
    assert.deepEqual((body as { issuers: unknown }).issuers, [row])
  })
})

describe('the 401 of an endpoint', () => {
  it('names the metadata of that endpoint, and an error only if a token was sent', async () => {
    const metadata = (path: string) => `resource_metadata="${gateway.url}/.well-known/oauth-protected-resource${path}"`
    for (const path of ['/mcp', '/mcp/unknown-app'])
      for (const [token, error] of [
        [undefined, ''],
        ['wrong', 'error="invalid_token", '],
      ] as const) {
        const { headers, body } = toMessage(MODERN, 'tools/list')
        const answer = await send(gateway.url + path, {
          headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
          body: JSON.stringify(body),
        })
        assert.equal(answer.status, 401)
        assert.equal(answer.headers['www-authenticate'], `Bearer ${error}${metadata(path)}, scope="tools"`)
      }
  })

  it('leads to metadata with the exact resource', async () => {
    for (const path of ['/mcp', '/mcp/unknown-app']) {
      const answer = await send(`${gateway.url}/.well-known/oauth-protected-resource${path}`, { method: 'GET' })
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.json(), {
        resource: gateway.url + path,
        authorization_servers: [login.issuer],
        bearer_methods_supported: ['header'],
        scopes_supported: ['tools', 'tools:write', 'tools:admin'],
      })
    }
    const slash = await send(`${gateway.url}/.well-known/oauth-protected-resource/mcp/`, { method: 'GET' })
    assert.equal((slash.json() as { resource: string }).resource, `${gateway.url}/mcp`)
    for (const path of ['', '/', '/api', '/mcp//', '/mcp/a/b', '/mcp/A'])
      assert.equal(
        (await send(`${gateway.url}/.well-known/oauth-protected-resource${path}`, { method: 'GET' })).status,
        404,
        path,
      )
  })
})

describe('the metadata of an endpoint', () => {
  it('may be read by a page of any origin, but under the names of the gateway only', async () => {
    const url = `${gateway.url}/.well-known/oauth-protected-resource/mcp`
    const origin = 'https://anything.example'
    const answer = await send(url, { method: 'GET', headers: { origin } })
    assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, '*'])
    const asks = {
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'mcp-protocol-version',
    }
    const preflight = await send(url, { method: 'OPTIONS', headers: { origin, ...asks } })
    assert.deepEqual(
      [preflight.status, preflight.headers['access-control-allow-headers']],
      [204, 'mcp-protocol-version'],
    )
    for (const method of ['GET', 'OPTIONS']) {
      const rebound = await send(url, { method, headers: { origin, host: 'evil.example', ...asks } })
      assert.deepEqual([rebound.status, rebound.headers['access-control-allow-origin']], [403, undefined])
    }
  })
})

describe('step-up', () => {
  it('lists a tool without its scopes, and a call names all that are missing at once', async () => {
    const token = await botToken('tools tools:write')
    assert.deepEqual(await namesOf(token), ['up__open', 'up__submit'])
    const answer = await ask(token, 'tools/call', { name: 'up__submit', arguments: {} })
    assert.equal(answer.status, 403)
    assert.equal(
      answer.headers['www-authenticate'],
      `Bearer error="insufficient_scope", scope="tools:admin", resource_metadata="${gateway.url}/.well-known/oauth-protected-resource/mcp"`,
    )
    const bare = await ask(await botToken('tools'), 'tools/call', { name: 'up__submit', arguments: {} })
    assert.match(String(bare.headers['www-authenticate']), /scope="tools:admin tools:write"/)
    assert.deepEqual(upstream.calls('submit'), [])
    const full = await ask(await botToken('tools:write tools:admin'), 'tools/call', {
      name: 'up__submit',
      arguments: {},
    })
    assert.equal(full.status, 200)
    assert.equal(upstream.calls('submit').length, 1)
  })

  it('never lends a token the scopes of another one of its client, whichever came last', async () => {
    const call = (token: string) => ask(token, 'tools/call', { name: 'up__submit', arguments: {} })
    const [wide, narrow] = [await botToken('tools:write tools:admin'), await botToken('tools')]
    const earlier = upstream.calls('submit').length
    for (const [token, status] of [
      [narrow, 403],
      [wide, 200],
      [narrow, 403],
    ] as const)
      assert.equal((await call(token)).status, status)
    const slow = callSlowly(narrow, async () => assert.equal((await call(wide)).status, 200))
    assert.equal(await slow, 403)
    assert.equal(upstream.calls('submit').length, earlier + 2)
  })

  it('says nothing of a tool that would stay hidden', async () => {
    const token = await botToken('tools')
    const [hidden, unknown] = await Promise.all(
      ['up__remove', 'up__nothing'].map((name) => ask(token, 'tools/call', { name, arguments: {} })),
    )
    assert.equal(hidden?.status, 200)
    assert.equal(hidden?.text.replace('up__remove', 'up__nothing'), unknown?.text)
  })

  it('leads a real client through the further scopes', async () => {
    const memory = new OAuthMemory()
    const client = await connect(memory)
    await assert.rejects(client.callTool({ name: 'up__submit', arguments: {} }), UnauthorizedError)
    assert.match(String(memory.visited?.searchParams.get('scope')), /tools:write/)
    await client.close()
  })
})
