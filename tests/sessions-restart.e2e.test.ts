import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it, type TestContext } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { GatewayConfig } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { type Answer, send } from './support/http.ts'
import { Witness } from './support/items-witness.ts'
import { CALLERS, callerConfig, KEYS, type Who } from './support/keys.ts'
import { hostEarlier, type HostedServer } from './support/mcp-host.ts'
import { ERAS, type Era, MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Sessions of earlier revisions outlive a restart, as most of their clients do not begin again. */

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const LEGACY_ERAS = ERAS.filter((era) => era !== MODERN)
const OTHER_KEY = 'another-key-of-viewer'
const group = (name: string, tools: string[], more: object) => ({
  name,
  tools,
  visibility: 'always',
  dependsOn: [],
  availableWhen: [],
  ...more,
})

let server: HostedServer
const witness = new Witness()
before(async () => {
  server = await hostEarlier(witness.answer)
})
after(() => server.close())

interface Restartable {
  readonly now: TestGateway
  restart(more?: Partial<GatewayConfig>): Promise<void>
}

/** A gateway that starts again on its own port, with the state of the process before. */
async function startRestartable(t: TestContext, given: Partial<GatewayConfig> = {}): Promise<Restartable> {
  const folder = tempFolder()
  const config = (port: number): Partial<GatewayConfig> => ({
    state: { store: 'sqlite', path: join(folder.path, 'state.db') },
    servers: [httpServer('files', server.url, { per: 'shared', offers: ['tools', 'resources'] })],
    callers: [...CALLERS, callerConfig(OTHER_KEY, { user: 'viewer', roles: ['viewer'] })],
    policy: [{ allow: ['*', 'resource:*:*'] }],
    groups: [group('links', ['files:link'], { unlock: 'request' })] as never,
    ...given,
    listen: { host: '127.0.0.1', port },
  })
  let now = await startTestGateway(config(0))
  const { port } = now
  t.after(async () => {
    await now.close()
    folder.remove()
  })
  return {
    get now() {
      return now
    },
    async restart(more = {}) {
      await now.close()
      now = await startTestGateway({ ...config(port), ...more, listen: { host: '127.0.0.1', port } })
    },
  }
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** A client that has nothing but the id of its session. */
class RawSession {
  readonly gateway: Restartable
  readonly era: Era
  readonly id: string

  constructor(gateway: Restartable, era: Era, id: string) {
    this.gateway = gateway
    this.era = era
    this.id = id
  }

  static async begin(gateway: Restartable, era: Era = '2025-06-18', who: Who = 'viewer'): Promise<RawSession> {
    const params = { protocolVersion: era, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { headers } = await gateway.now.ask(who, era, 'initialize', params)
    return new RawSession(gateway, era, headers['mcp-session-id'] as string)
  }

  ask(method: string, params: object = {}, key: string = KEYS.viewer): Promise<Answer> {
    const { headers, body } = toMessage(this.era, method, params as never)
    const sent = { ...headers, ...bearer(key), 'mcp-session-id': this.id }
    return send(this.gateway.now.mcpUrl, { headers: sent, body: JSON.stringify(body) })
  }

  end(): Promise<Answer> {
    return send(this.gateway.now.mcpUrl, {
      method: 'DELETE',
      headers: { ...bearer(KEYS.viewer), 'mcp-session-id': this.id },
    })
  }

  async tools(): Promise<readonly string[]> {
    const { result } = (await this.ask('tools/list')).json() as RpcAnswer
    return (result?.tools ?? []).map(({ name }) => name)
  }
}

describe('a session after a restart of the gateway', () => {
  for (const era of LEGACY_ERAS)
    it(`goes on for its user, with any key, in ${era}`, async (t) => {
      const gateway = await startRestartable(t)
      const session = await RawSession.begin(gateway, era)
      for (let i = 0; i < 2; i++) {
        await gateway.restart()
        assert.equal((await session.ask('tools/list')).status, 200)
        assert.equal((await session.ask('ping', {}, OTHER_KEY)).status, 200)
      }
    })

  it('is 404 for every other user, with the answer for an unknown session', async (t) => {
    const gateway = await startRestartable(t)
    const session = await RawSession.begin(gateway)
    await gateway.restart()
    const foreign = await session.ask('tools/list', {}, KEYS.admin)
    const unknown = new RawSession(gateway, session.era, '00000000-0000-4000-8000-000000000000')
    assert.deepEqual([foreign.status, foreign.text], [404, (await unknown.ask('tools/list')).text])
    assert.equal((await session.ask('tools/list')).status, 200)
  })

  it('stays ended if it was ended, before the restart or after', async (t) => {
    const gateway = await startRestartable(t)
    const [earlier, later] = [await RawSession.begin(gateway), await RawSession.begin(gateway)]
    assert.equal((await earlier.end()).status, 200)
    await gateway.restart()
    assert.equal((await earlier.ask('tools/list')).status, 404)
    assert.equal((await earlier.end()).status, 404)
    // It is ended before it was used here.
    assert.equal((await later.end()).status, 200)
    assert.equal((await later.ask('tools/list')).status, 404)
    await gateway.restart()
    for (const session of [earlier, later]) assert.equal((await session.ask('tools/list')).status, 404)
  })

  it('keeps the groups that it has opened, and locks them when it ends', async (t) => {
    const gateway = await startRestartable(t)
    const [session, other] = [await RawSession.begin(gateway), await RawSession.begin(gateway)]
    assert.ok(!(await session.tools()).includes('files__link'))
    await session.ask('tools/call', { name: 'request_tools', arguments: { group: 'links' } })
    assert.ok((await session.tools()).includes('files__link'))
    for (let i = 0; i < 2; i++) {
      await gateway.restart()
      assert.ok((await session.tools()).includes('files__link'))
      assert.ok(!(await other.tools()).includes('files__link'))
    }
    // What the rules now hide stays hidden, whatever the session had opened.
    await gateway.restart({ policy: [{ allow: ['*'], deny: ['files:link'] }] })
    assert.ok(!(await session.tools()).includes('files__link'))
    const called = (await session.ask('tools/call', { name: 'files__link', arguments: {} })).json() as RpcAnswer
    assert.equal(called.result?.isError, true)
    await session.end()
    await gateway.restart()
    assert.equal((await session.ask('tools/list')).status, 404)
  })

  it('ends with the process if the state is in memory', async (t) => {
    const gateway = await startRestartable(t, { state: { store: 'memory' } })
    const session = await RawSession.begin(gateway)
    assert.equal((await session.ask('tools/list')).status, 200)
    await gateway.restart()
    assert.equal((await session.ask('tools/list')).status, 404)
  })

  it('needs a key that is still accepted', async (t) => {
    const gateway = await startRestartable(t)
    const session = await RawSession.begin(gateway)
    await gateway.restart({ callers: CALLERS.filter(({ caller }) => caller.user !== 'viewer') })
    assert.equal((await session.ask('tools/list')).status, 401)
  })
})

/** The clients that people use, which know nothing of the restart. */
const options = { requestInit: { headers: bearer(KEYS.viewer) } }
const INFO = { name: 'test', version: '1' }

async function connectV1(url: URL) {
  const heard: string[] = []
  const client = new ClientV1(INFO)
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri))
  const transport = new TransportV1(url, { ...options, reconnectionOptions: RECONNECT })
  await client.connect(transport as Parameters<ClientV1['connect']>[0])
  return { client: client as unknown as Client, heard, transport }
}

async function connectV2(url: URL) {
  const heard: string[] = []
  const client = new Client(INFO, { versionNegotiation: { mode: 'legacy' } })
  client.setNotificationHandler('notifications/tools/list_changed', () => void heard.push('tools'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  const transport = new StreamableHTTPClientTransport(url, { ...options, reconnectionOptions: RECONNECT })
  await client.connect(transport)
  return { client, heard, transport }
}

/** The SDK 1.x has the schema of the result before the options. */
function callLong(
  client: Client,
  call: Parameters<Client['callTool']>[0],
  watch: { onprogress(value: unknown): void },
) {
  return (client as unknown) instanceof ClientV1
    ? (client as unknown as ClientV1).callTool(call, undefined, watch)
    : client.callTool(call, watch)
}

/** Soon, and for as long as the restart on a loaded machine takes. */
const RECONNECT = {
  initialReconnectionDelay: 100,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 120,
}

const CLIENTS = [
  ['the SDK 1.x', connectV1],
  ['the SDK 2.4 in legacy mode', connectV2],
] as const

for (const [name, connect] of CLIENTS)
  describe(`${name}, across restarts`, () => {
    it('calls, lists and ends its session as if nothing had happened', async (t) => {
      const gateway = await startRestartable(t)
      const { client, transport } = await connect(new URL(gateway.now.mcpUrl))
      t.after(() => client.close())
      const call = async () => client.callTool({ name: 'request_tools', arguments: { group: 'links' } })
      const first = await call()
      const session = new RawSession(gateway, '2025-11-25', transport.sessionId ?? '')
      for (let i = 0; i < 2; i++) {
        await gateway.restart()
        assert.deepEqual((await call()).isError, first.isError)
        const { tools } = await client.listTools()
        assert.ok(tools.some(({ name: tool }) => tool === 'files__link'))
      }
      assert.equal((await session.ask('ping')).status, 200)
      await transport.terminateSession()
      await gateway.restart()
      assert.equal((await session.ask('ping')).status, 404)
      await client.close()
    })

    it('is told that its lists may have changed, and keeps its subscriptions', async (t) => {
      const gateway = await startRestartable(t)
      const { client, heard } = await connect(new URL(gateway.now.mcpUrl))
      t.after(() => client.close())
      await client.subscribeResource({ uri: 'file:///work/a.txt' })
      for (let i = 0; i < 2; i++) {
        await gateway.restart()
        heard.length = 0
        await until(() => heard.includes('tools'))
        await until(() => {
          server.updated('file:///work/a.txt')
          return heard.includes('file:///work/a.txt')
        })
      }
      await client.unsubscribeResource({ uri: 'file:///work/a.txt' })
      await gateway.restart()
      heard.length = 0
      await until(() => heard.includes('tools'))
      for (let i = 0; i < 10; i++) {
        server.updated('file:///work/a.txt')
        await client.ping()
      }
      assert.ok(!heard.includes('file:///work/a.txt'))
      await client.close()
    })
  })

describe('a killed "toolgate serve"', () => {
  /** Runs the command, and runs it again on the same port. */
  async function startKillable(t: TestContext) {
    const folder = tempFolder()
    const file = join(folder.path, 'toolgate.yaml')
    const start = async (port: number) => {
      const slow = `{ command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SLOW)}] }`
      const callers = `[{ key: ${KEYS.viewer}, user: viewer }]`
      const text = `servers: { slow: ${slow} }\ncallers: ${callers}\npolicy: [{ allow: ["*"] }]\n`
      writeFileSync(file, `listen: { port: ${port} }\n${text}`)
      const args = ['--conditions=toolgate-source', BIN, 'serve', '--config', file]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
      t.after(() => child.kill('SIGKILL'))
      for await (const line of createInterface({ input: child.stdout })) {
        const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line)?.[0]
        if (url !== undefined) return { child, url: new URL(url) }
      }
      throw new Error('it did not start')
    }
    let { child, url } = await start(0)
    t.after(() => folder.remove())
    return {
      url,
      async killAndStart() {
        child.kill('SIGKILL')
        await once(child, 'exit')
        ;({ child } = await start(Number(url.port)))
      },
    }
  }

  for (const [name, connect] of CLIENTS)
    it(`keeps the session of ${name}, and a call that was lost with the process fails at once`, async (t) => {
      const gateway = await startKillable(t)
      const { client } = await connect(gateway.url)
      t.after(() => client.close())
      const echo = () => client.callTool({ name: 'slow__echo', arguments: {} })
      await until(async () => (await echo()).isError !== true)
      const begun = Promise.withResolvers<unknown>()
      const call = { name: 'slow__until', arguments: { file: '/nowhere' } }
      const calling = callLong(client, call, { onprogress: begun.resolve })
      calling.catch(() => {})
      await begun.promise
      await gateway.killAndStart()
      await assert.rejects(calling, /The process that ran this call is gone, and the call with it\. It may have run\./)
      await until(async () => (await echo()).isError !== true)
      // While its stream is open: a client that is closed while it reconnects tries for long.
      await client.close()
    })
})
