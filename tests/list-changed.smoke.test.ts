import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS, type Who } from './support/keys.ts'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Notifications of changed lists: sent in both eras to clients whose own list changed, and to no others. */

const CHANGED = 'notifications/tools/list_changed'
const ADMINS_ONLY = { deny: [{ match: 'up:write', unless: "'admin' in caller.roles" }] }
const TOOLS = [{ name: 'read' }, { name: 'write' }]

let upstream: RecordingServer
let gateway: TestGateway
const closing: (() => unknown)[] = []

before(async () => {
  upstream = await startRecordingServer(TOOLS)
  gateway = await startTestGateway({ servers: [httpServer('up', upstream.url)] })
  gateway.gate.setPolicy(ADMINS_ONLY)
})

after(async () => {
  await gateway?.close()
  await upstream?.close()
})

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
  gateway.gate.setPolicy(ADMINS_ONLY)
  await until(() => isAsOffered(TOOLS))
  await until(hasNoStreams)
})

describe('subscriptions/listen', () => {
  it('is acknowledged, and announces each change of the caller’s list with its id', async () => {
    const stream = await listen('admin', 'sub-1')
    assert.deepEqual(stream.events[0], {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: { toolsListChanged: true },
        _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub-1' },
      },
    })
    gateway.gate.setPolicy({ deny: ['up:write'] })
    await until(() => stream.events.length > 1)
    assert.deepEqual(stream.events[1], {
      jsonrpc: '2.0',
      method: CHANGED,
      params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub-1' } },
    })
  })

  it('announces nothing to callers whose list did not change', async () => {
    const [admin, viewer] = [await listen('admin'), await listen('viewer')]
    gateway.gate.setPolicy({ deny: ['up:write'] })
    await until(() => admin.events.length > 1)
    await sleep(1200)
    assert.deepEqual([admin.events.length, viewer.events.length], [2, 1])
  })

  for (const [shows, change, undo] of [
    ['policy', () => gateway.gate.setPolicy({ deny: ['up:read'] }), () => {}],
    ['the catalog', () => upstream.setTools([...TOOLS, { name: 'more' }]), () => upstream.setTools(TOOLS)],
    [
      'a definition',
      () => upstream.setTools([{ name: 'read', description: 'New.' }, { name: 'write' }]),
      () => upstream.setTools(TOOLS),
    ],
    [
      'a halt',
      () => gateway.gate.halt({ user: 'viewer', reason: 'r' }),
      () => gateway.gate.release({ user: 'viewer' }),
    ],
  ] as const)
    it(`announces a change by ${shows}`, async () => {
      const stream = await listen('viewer')
      await change()
      await until(() => stream.events.length > 1)
      await undo()
    })

  it('announces many simultaneous changes once', async () => {
    const stream = await listen('viewer')
    for (let i = 0; i < 50; i++) gateway.gate.setPolicy({ deny: i % 2 === 0 ? ['up:read'] : ['up:*'] })
    await until(() => stream.events.length > 1)
    await sleep(200)
    assert.equal(stream.events.length, 2)
  })

  it("reaches the SDK's client, which then lists again", async () => {
    const lists: number[] = []
    const client = new Client(
      { name: 'c', version: '1' },
      {
        listChanged: {
          tools: {
            autoRefresh: true,
            debounceMs: 0,
            onChanged: (_error, tools) => void lists.push(tools?.length ?? -1),
          },
        },
        versionNegotiation: { mode: { pin: MODERN } },
      },
    )
    await client.connect(
      new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), {
        requestInit: { headers: { authorization: `Bearer ${KEYS.admin}` } },
      }),
    )
    closing.push(() => client.close())
    gateway.gate.setPolicy({ deny: ['up:write'] })
    await until(() => lists.length > 0)
    assert.equal(lists[0], 1)
  })

  it('is refused beyond 64 streams of one key, and leaves nothing behind when they close', async () => {
    for (let i = 0; i < 64; i++) await listen('operator', i)
    const answer = await gateway.ask('operator', MODERN, 'subscriptions/listen', FILTER, { id: 64 })
    assert.deepEqual((answer.json() as RpcAnswer).error?.code, -32_603)
    const headers = { ...bearer('operator'), 'mcp-session-id': await initialize('operator') }
    assert.equal((await send(gateway.mcpUrl, { method: 'GET', headers })).status, 429)
    await listen('viewer')
    await Promise.all(closing.splice(0).map((close) => close()))
    await until(async () => (await tryListen('operator')) === 'open')
  })

  it('ends with the result of the request when the gateway stops', async () => {
    const own = await startTestGateway({})
    const stream = await listen('admin', 'last', own)
    await own.close()
    await until(() => stream.ended())
    assert.deepEqual(stream.events.at(-1), {
      jsonrpc: '2.0',
      id: 'last',
      result: {
        resultType: 'complete',
        _meta: {
          'io.modelcontextprotocol/subscriptionId': 'last',
          'io.modelcontextprotocol/serverInfo': (stream.events.at(-1) as RpcAnswer).result?._meta?.[
            'io.modelcontextprotocol/serverInfo'
          ],
        },
      },
    })
  })

  it('keeps nothing for any number of clients that connect and disconnect', async () => {
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 20 }, (_, i) => listen('admin', `${round}-${i}`)))
      await Promise.all(closing.splice(0).map((close) => close()))
    }
    await until(hasNoStreams)
  })
})

describe('the stream of a session of an earlier revision', () => {
  it('announces each change of the caller’s list', async () => {
    const stream = await get('viewer', await initialize('viewer'))
    const other = await get('admin', await initialize('admin'))
    gateway.gate.setPolicy({ deny: [{ match: 'up:*', when: "'viewer' in caller.roles" }, ...ADMINS_ONLY.deny] })
    await until(() => stream.events.length > 0)
    assert.deepEqual(stream.events, [{ jsonrpc: '2.0', method: CHANGED }])
    await sleep(1200)
    assert.deepEqual(other.events, [])
  })

  it("reaches the SDK's client of an earlier revision", async () => {
    let heard = 0
    const client = new ClientV1({ name: 'c', version: '1' })
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard++)
    await client.connect(
      new TransportV1(new URL(gateway.mcpUrl), {
        requestInit: { headers: { authorization: `Bearer ${KEYS.admin}` } },
      }) as never,
    )
    closing.push(() => client.close())
    assert.deepEqual(client.getServerCapabilities()?.tools, { listChanged: true })
    // It opens its stream after the handshake.
    await until(async () => /^toolgate_list_streams 1$/m.test(await metrics()))
    gateway.gate.setPolicy({ deny: ['up:write'] })
    await until(() => heard > 0)
  })

  it('ends with its session', async () => {
    const session = await initialize('viewer')
    const stream = await get('viewer', session)
    const headers = { ...bearer('viewer'), 'mcp-session-id': session }
    assert.equal((await send(gateway.mcpUrl, { method: 'DELETE', headers })).status, 200)
    await until(() => stream.ended())
  })

  it('requires a session: without one, GET and DELETE are not supported', async () => {
    for (const method of ['GET', 'DELETE'])
      assert.equal((await send(gateway.mcpUrl, { method, headers: bearer('viewer') })).status, 405)
  })
})

const FILTER = { notifications: { toolsListChanged: true } }

/** The catalog is read again some time after the upstream announces a change. */
function isAsOffered(tools: readonly RecordedTool[]): boolean {
  const describeAll = (all: Iterable<Pick<RecordedTool, 'name' | 'description'>>) =>
    Array.from(all, ({ name, description = '' }) => `${name}: ${description}`).toSorted()
  return isDeepStrictEqual(describeAll(gateway.gate.catalog.snapshot()), describeAll(tools))
}

interface Stream {
  readonly events: readonly unknown[]
  ended(): boolean
}

function bearer(who: Who): Record<string, string> {
  return { authorization: `Bearer ${KEYS[who]}`, accept: 'text/event-stream' }
}

async function listen(who: Who, id: string | number = 'a', at: TestGateway = gateway): Promise<Stream> {
  const { headers, body } = toMessage(MODERN, 'subscriptions/listen', FILTER, id)
  const stream = await openStream(at.mcpUrl, 'POST', { ...headers, ...bearer(who) }, JSON.stringify(body))
  await until(() => stream.events.length > 0)
  return stream
}

async function tryListen(who: Who): Promise<'open' | 'refused'> {
  const stream = await listen(who).catch(() => undefined)
  return stream && (stream.events[0] as RpcAnswer).error === undefined ? 'open' : 'refused'
}

async function initialize(who: Who): Promise<string> {
  const answer = await gateway.ask(who, '2025-11-25', 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'x', version: '1' },
  })
  return answer.headers['mcp-session-id'] as string
}

function get(who: Who, session: string): Promise<Stream> {
  return openStream(gateway.mcpUrl, 'GET', { ...bearer(who), 'mcp-session-id': session })
}

function openStream(url: string, method: string, headers: Record<string, string>, body?: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const events: unknown[] = []
    let text = ''
    let ended = false
    const sent = request(url, { method, headers, agent: false }, (response: IncomingMessage) => {
      const { 'content-type': type } = response.headers
      if (response.statusCode !== 200 || type !== 'text/event-stream') {
        response.destroy()
        return reject(new Error(`${response.statusCode} ${type}`))
      }
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        for (let at = text.indexOf('\n\n'); at !== -1; at = text.indexOf('\n\n')) {
          const data = /^data: (.*)$/m.exec(text.slice(0, at))?.[1]
          if (data !== undefined) events.push(JSON.parse(data))
          text = text.slice(at + 2)
        }
      })
      response.on('close', () => (ended = true))
      response.on('error', () => {})
      resolve({ events, ended: () => ended })
    })
    closing.push(() => sent.destroy())
    sent.on('error', reject)
    sent.end(body)
  })
}

async function hasNoStreams(): Promise<boolean> {
  return /^toolgate_list_streams 0$/m.test(await metrics())
}

async function metrics(): Promise<string> {
  const answer = await send(`${gateway.url}/metrics`, {
    method: 'GET',
    headers: { authorization: `Bearer ${KEYS.console}` },
  })
  return answer.text
}
