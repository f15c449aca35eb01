import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { systemClock } from '@toolgate/core/stores'
import type { GatewayConfig } from '@toolgate/gateway'
import { type AuthorizationServer, startAuthorizationServer } from './support/authorization-server.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type Answer, send } from './support/http.ts'
import { OAuthMemory } from './support/oauth-memory.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** A gateway between real authorization servers and clients, over the life of keys, tokens and issuers. */

const SECRET = 'secret-of-the-client'
const credentials = (id: string) => ({
  client_id: id,
  client_secret: SECRET,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
})
const TOOLS = ['open', 'submit', 'remove'].map((name) => ({ name, description: `Does ${name}.` }))
const SKEW_MS = 30_000

let upstream: RecordingServer
let signing: AuthorizationServer
let opaque: AuthorizationServer
let gateway: TestGateway
/** How far the gateway's clocks are ahead. */
const ahead = { wallMs: 0, monotonicMs: 0 }

const clock = {
  wallMs: () => systemClock.wallMs() + ahead.wallMs,
  monotonicMs: () => systemClock.monotonicMs() + ahead.monotonicMs,
}

before(async () => {
  upstream = await startRecordingServer(TOOLS)
  const options = { scopes: ['tools', 'tools:write'], clients: [credentials('bot'), credentials('gateway')] }
  signing = await startAuthorizationServer(options)
  opaque = await startAuthorizationServer({ ...options, format: 'opaque' })
  const issuer = {
    audiences: [],
    algorithms: ['RS256'],
    clockSkewMs: SKEW_MS,
    claims: { user: 'sub' },
    users: new Map<string, string>(),
  }
  const introspection = { clientId: 'gateway', clientSecret: SECRET, tokens: 'opaque', cacheMs: 30_000 } as const
  const given: Partial<GatewayConfig> = {
    servers: [
      {
        ...httpServer('up', upstream.url),
        tools: new Map([
          ['submit', { requiredScopes: ['tools:write'] }],
          ['remove', { requiredScopes: ['tools:root'] }],
        ]),
      },
    ],
    search: { offer: 'always' },
    oauth: {
      issuers: [
        { ...issuer, issuer: signing.issuer, name: 'corp' },
        { ...issuer, issuer: opaque.issuer, name: 'partner', introspection },
      ],
      scopes: ['tools'],
      stepUp: ['tools:write'],
    },
  }
  gateway = await startTestGateway(given, undefined, clock)
})

after(async () => {
  await gateway?.close()
  await signing?.close()
  await opaque?.close()
  await upstream?.close()
})

/** Returns a token of a client itself. */
function tokenOf(server: AuthorizationServer, resource = `${gateway.url}/mcp`): Promise<string> {
  return server.clientToken('bot', SECRET, { scope: 'tools', resource })
}

let sender = 0

/** Sends a request from an address of its own, as the refusals of one address are delayed. */
function ask(token: string, method = 'tools/list', params: Params = {}): Promise<Answer> {
  const { headers, body } = toMessage(MODERN, method, params)
  return send(gateway.mcpUrl, {
    localAddress: `127.0.1.${++sender % 250}`,
    headers: { ...headers, authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  })
}

async function statusOf(token: string): Promise<number> {
  return (await ask(token)).status
}

type Part = Readonly<Record<string, unknown>>

function partOf(token: string, at: number): Part {
  return JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString()) as Part
}

function withHeader(token: string, header: Part): string {
  return token.replace(/^[^.]+/, Buffer.from(JSON.stringify(header)).toString('base64url'))
}

describe('keys of an issuer', () => {
  const read = () => signing.asked.get('/jwks') ?? 0

  it('open for tokens of an earlier key until it is withdrawn, and are read once for a new one', async () => {
    const first = await tokenOf(signing)
    assert.equal(await statusOf(first), 200)
    await signing.rotate('stay')
    const second = await tokenOf(signing)
    assert.notEqual(partOf(first, 0)['kid'], partOf(second, 0)['kid'])
    ahead.monotonicMs += 5_000
    const count = read()
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => statusOf(second))), [200, 200, 200, 200, 200])
    assert.equal(read(), count + 1)
    assert.equal(await statusOf(first), 200)
    await signing.rotate('withdrawn')
    const third = await tokenOf(signing)
    ahead.monotonicMs += 600_000
    assert.equal(await statusOf(third), 200)
    for (const earlier of [first, second]) assert.equal(await statusOf(earlier), 401)
  })

  it('are not read at the will of a sender', async () => {
    const token = await tokenOf(signing)
    assert.equal(await statusOf(token), 200)
    ahead.monotonicMs += 5_000
    const count = read()
    const flood = Array.from({ length: 50 }, (_, i) => withHeader(token, { ...partOf(token, 0), kid: `flood-${i}` }))
    for (const status of await Promise.all(flood.map(statusOf))) assert.equal(status, 401)
    assert.equal(read(), count + 1)
    assert.equal(await statusOf(token), 200)
  })
})

describe('the clock of an issuer', () => {
  it('may be off by the configured time, and no more', async () => {
    const token = await tokenOf(signing)
    const { iat, exp } = partOf(token, 1) as { iat: number; exp: number }
    const now = systemClock.wallMs()
    // Far from the edges, so that a slow machine tells the same.
    for (const [wallMs, status] of [
      [iat * 1000 - SKEW_MS - 20_000, 401],
      [iat * 1000 - SKEW_MS + 10_000, 200],
      [exp * 1000 + SKEW_MS - 20_000, 200],
      [exp * 1000 + SKEW_MS + 1, 401],
    ] as const) {
      ahead.wallMs = wallMs - now
      assert.equal(await statusOf(token), status, `${wallMs - iat * 1000}`)
    }
    ahead.wallMs = 0
  })
})

describe('a stream', () => {
  it('ends with the token that opened it, before anything is sent that comes later', async () => {
    const token = await tokenOf(signing)
    const { headers, body } = toMessage(MODERN, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const response = await fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    const chunks = (response.body ?? new ReadableStream<Uint8Array>()).pipeThrough(new TextDecoderStream()).getReader()
    const texts: string[] = []
    const next = async () => {
      const { done, value } = await chunks.read()
      if (value !== undefined) texts.push(value)
      return !done
    }
    assert.ok(await next())
    assert.match(texts.join(''), /acknowledged/)
    upstream.setTools([...TOOLS, { name: 'added' }])
    while (!texts.join('').includes('list_changed')) assert.ok(await next())
    const count = texts.length
    ahead.wallMs += 600_000 + SKEW_MS
    upstream.setTools(TOOLS)
    while (await next());
    assert.ok(!texts.slice(count).join('').includes('list_changed'))
    assert.equal(await statusOf(token), 401)
    ahead.wallMs = 0
  })
})

describe('step-up through call_tool', () => {
  const call = (token: string, name: string) =>
    ask(token, 'tools/call', { name: 'call_tool', arguments: { name, arguments: {} } })

  it('is the 403 of a direct call, and says nothing of a tool that would stay hidden', async () => {
    const token = await tokenOf(signing)
    const direct = await ask(token, 'tools/call', { name: 'up__submit', arguments: {} })
    const through = await call(token, 'up__submit')
    assert.deepEqual([direct.status, through.status], [403, 403])
    assert.match(String(direct.headers['www-authenticate']), /error="insufficient_scope", scope="tools:write"/)
    assert.equal(through.headers['www-authenticate'], direct.headers['www-authenticate'])
    assert.equal(through.text, direct.text)
    const [hidden, unknown] = await Promise.all(['up__remove', 'up__nothing'].map((name) => call(token, name)))
    assert.equal(hidden?.status, 200)
    assert.equal(hidden?.text.replace('up__remove', 'up__nothing'), unknown?.text)
    assert.deepEqual(upstream.calls('submit'), [])
  })

  it('is the same for agents that speak no MCP', async () => {
    const token = await tokenOf(signing)
    const post = (body: object) =>
      send(`${gateway.url}/api/call`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const direct = await post({ tool: 'up:submit', input: {} })
    const through = await post({ tool: 'call_tool', input: { name: 'up:submit', arguments: {} } })
    assert.equal(through.status, 403)
    assert.equal(through.text, direct.text)
    assert.equal(through.headers['www-authenticate'], direct.headers['www-authenticate'])
  })
})

describe('a refused token', () => {
  it('is explained to the operator, and to nobody else', async () => {
    const other = await tokenOf(signing, 'https://other.example.com/mcp')
    const good = await tokenOf(signing)
    const unknown = withHeader(good, { ...partOf(good, 0), kid: 'none' })
    const [, claims = '', signature = ''] = good.split('.')
    const changed = `${good.split('.')[0]}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    const foreign = good.replace(
      /\.[^.]+\./,
      `.${Buffer.from(JSON.stringify({ ...partOf(good, 1), iss: 'https://login.example.com' })).toString('base64url')}.`,
    )
    const tokens = [other, unknown, changed, foreign, 'opaque']
    const answers: Answer[] = []
    for (const token of tokens) answers.push(await ask(token))
    const seen = answers.map(({ status, text, headers }) => [status, text, headers['www-authenticate']])
    for (const one of seen) assert.deepEqual(one, seen[0])
    assert.deepEqual(seen[0]?.[0], 401)
    const { text: metrics } = await send(`${gateway.url}/metrics`, {
      method: 'GET',
      headers: { authorization: 'Bearer demo-console' },
    })
    const lines = gateway.log.map(({ message, detail }) => `${message}: ${detail}`)
    for (const [issuer, reason, detail] of [
      ['corp', 'audience', `the audience is "https://other.example.com/mcp", expected ${gateway.url}/mcp`],
      ['corp', 'key', ''],
      ['corp', 'signature', ''],
      ['unknown', 'issuer', 'the issuer is "https://login.example.com", which is not configured'],
      ['partner', 'inactive', ''],
    ] as const) {
      assert.match(
        metrics,
        new RegExp(`^toolgate_refused_tokens_total\\{issuer="${issuer}",reason="${reason}"\\} \\d`, 'm'),
      )
      const line = lines.find((one) => one.startsWith(`a token of the issuer ${issuer} was refused (${reason})`))
      assert.ok(line?.includes(detail), line)
    }
    for (const token of tokens.slice(0, -1)) assert.ok(!lines.some((line) => line.includes(token.slice(-40))))
  })
})

describe('an SDK 1.x client that knows only the URL', () => {
  it('finds the authorization server from a bare 401, gets a token, calls a tool, and is led to more scopes', async () => {
    const memory = new OAuthMemory()
    const open = async () => {
      const client = new ClientV1({ name: 'test', version: '1' })
      const transport = new TransportV1(new URL(gateway.mcpUrl), { authProvider: memory as never })
      return { client, transport }
    }
    const first = await open()
    await assert.rejects(first.client.connect(first.transport as never), UnauthorizedV1)
    const back = await signing.open(memory.visited as URL)
    await first.transport.finishAuth(back.searchParams.get('code') ?? '')
    const { client, transport } = await open()
    await client.connect(transport as never)
    const { tools } = await client.listTools()
    assert.ok(tools.some(({ name }) => name === 'up__open'))
    const { content } = await client.callTool({ name: 'up__open', arguments: {} })
    assert.ok(content)
    memory.visited = undefined
    await assert.rejects(client.callTool({ name: 'up__submit', arguments: {} }), UnauthorizedV1)
    assert.match(String((memory.visited as URL | undefined)?.searchParams.get('scope')), /tools:write/)
    await client.close()
    const [record] = ((await gateway.api('/api/audit?limit=20')).body as { records: { user_id?: string }[] }).records
    assert.equal(record?.user_id, 'corp/vera')
  })
})

describe('opaque tokens', () => {
  const asked = () => opaque.asked.get('/token/introspection') ?? 0

  it('open by what the issuer says of them, asked once in 30 seconds, and end when they are revoked', async () => {
    const token = await tokenOf(opaque)
    assert.ok(!token.includes('.'))
    const count = asked()
    assert.deepEqual([await statusOf(token), await statusOf(token)], [200, 200])
    assert.equal(asked(), count + 1)
    const { result } = (await ask(token, 'tools/call', { name: 'up__open', arguments: {} })).json() as RpcAnswer
    assert.ok(result)
    const [record] = ((await gateway.api('/api/audit?limit=1')).body as { records: { user_id?: string }[] }).records
    assert.equal(record?.user_id, 'partner:client/bot')
    await opaque.revoke('bot', SECRET, token)
    ahead.monotonicMs += 30_000
    assert.equal(await statusOf(token), 401)
  })

  it('for another resource open nothing', async () => {
    assert.equal(await statusOf(await tokenOf(opaque, 'https://other.example.com/mcp')), 401)
  })

  it('that are known go on while the issuer is down, and new ones wait for it', async () => {
    const [known, unseen] = [await tokenOf(opaque), await tokenOf(opaque)]
    assert.equal(await statusOf(known), 200)
    await opaque.close()
    ahead.monotonicMs += 30_000
    assert.equal(await statusOf(known), 200)
    const answer = await ask(unseen)
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'])
    assert.equal(answer.headers['www-authenticate'], undefined)
    ahead.wallMs += 600_000 + SKEW_MS
    assert.notEqual(await statusOf(known), 200)
    ahead.wallMs = 0
  })
})
