import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { loadConfig, type ReadyBody } from '@toolgate/gateway'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { startHaproxy } from './support/haproxy.ts'
import { send } from './support/http.ts'
import { Witness } from './support/items-witness.ts'
import { KEYS } from './support/keys.ts'
import { hostEarlier, type HostedServer } from './support/mcp-host.ts'
import { freePort, type OwnServer } from './support/own-server.ts'
import { MODERN } from './support/rpc.ts'
import { ownPostgres } from './support/own-stores.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const ASKING = join(import.meta.dirname, 'support/asking-server.ts')
const REPLICA = join(import.meta.dirname, 'support/run-replica.ts')

withBinaries(['postgres', 'initdb', 'haproxy'], (paths) => {
  describe('replicas behind a load balancer without stickiness', () => {
    const postgres = ownPostgres(paths)
    const gateways: TestGateway[] = []
    const clients: Pick<Client, 'close'>[] = []
    let folder: ReturnType<typeof tempFolder>
    let proxy: OwnServer
    let ports: readonly number[]
    let url: string
    /** A server with resources. */
    let notes: HostedServer

    before(async () => {
      ports = await Promise.all([freePort(), freePort(), freePort()])
      proxy = await startHaproxy(paths.haproxy, await freePort(), ports)
      url = `http://127.0.0.1:${proxy.port}`
      notes = await hostEarlier(new Witness().answer)
    })
    after(() => Promise.all([proxy.stop(), notes.close()]))

    /** The log of the server that asks. */
    const asked = () => join(folder.path, 'asked.log')
    const write = (port: number, policy = '[{ allow: ["*", "resource:notes:*"] }]') => {
      const file = join(folder.path, `${port}.yaml`)
      writeFileSync(
        file,
        `
listen: { port: ${port} }
publicUrl: "${url}"
drainMs: 5000
servers:
  own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
  mine: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: user }
  asks: { command: ${JSON.stringify(process.execPath)}, args: [--conditions=toolgate-source, ${JSON.stringify(ASKING)}, ${JSON.stringify(asked())}], per: shared, may: [elicit] }
  notes: { url: ${JSON.stringify(notes.url)}, per: shared, offers: [resources] }
groups:
  closed: { tools: ["own:fail"], unlock: request }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy: ${policy}
audit: { store: memory }
stores: { postgres: "${postgres.url}" }
`,
      )
      return file
    }
    const start = async (port: number) => {
      const gateway = await startTestGateway(loadConfig(write(port)))
      gateways.push(gateway)
      return gateway
    }
    const connect = async (key: string = KEYS.viewer) => {
      const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Vera' } }))
      const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      })
      await client.connect(transport)
      clients.push(client)
      return { client, transport }
    }
    const ping = (port: number, session: string, headers: Readonly<Record<string, string>> = {}) =>
      send(`http://127.0.0.1:${port}/mcp`, {
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-session-id': session,
          authorization: `Bearer ${KEYS.viewer}`,
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      })
    /** Resolves when HAProxy sends requests to all of them. */
    const inTurn = () =>
      until(async () => {
        const seen = new Set<unknown>()
        for (const _ of ports) {
          const { status, text } = await send(`${url}/readyz`, { method: 'GET' })
          if (status === 200) seen.add((JSON.parse(text) as ReadyBody).replica?.id)
        }
        return seen.size === ports.length
      })
    const connectModern = async (key: string = KEYS.viewer) => {
      const client = new ModernClient(
        { name: 'test', version: '1' },
        { versionNegotiation: { mode: { pin: MODERN } }, capabilities: { elicitation: { form: {} } } },
      )
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Vera' } }))
      const transport = new ModernTransport(new URL(`${url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      })
      await client.connect(transport)
      clients.push(client)
      return client
    }
    const call = async (client: Client | ModernClient, name: string, given: Record<string, unknown> = {}) => {
      const { content } = await client.callTool({ name, arguments: given })
      return (content as { text: string }[])[0]?.text
    }
    const echo = (client: Client, word: string) => call(client, 'own__echo', { word })

    const startAll = async () => {
      await postgres.empty()
      folder = tempFolder()
      // The first publishes its file.
      for (const port of ports) await start(port)
      await inTurn()
    }
    const stopAll = async () => {
      await Promise.all(gateways.splice(0).map((gateway) => gateway.close()))
      folder.remove()
    }
    const leave = () => Promise.all(clients.splice(0).map((client) => client.close()))

    describe('that all go on', () => {
      before(startAll)
      afterEach(leave)
      after(stopAll)

      it('serve a session of an earlier client wherever its requests arrive', async () => {
        const { client, transport } = await connect()
        const words = Array.from({ length: 12 }, (_, i) => `word ${i}`)
        assert.deepEqual(await Promise.all(words.map((word) => echo(client, word))), words)
        assert.equal((await client.listTools()).tools.length > 0, true)
        const id = transport.sessionId ?? ''
        assert.equal((await ping(proxy.port, id)).status, 200)
        await transport.terminateSession()
        for (const port of ports) assert.equal((await ping(port, id)).status, 404)
      })

      it('keep a session from other users, and from a forged forwarding', async () => {
        const { transport } = await connect()
        const id = transport.sessionId ?? ''
        for (const port of ports) {
          assert.equal((await ping(port, id)).status, 200)
          assert.equal((await ping(port, id, { authorization: `Bearer ${KEYS.operator}` })).status, 404)
          assert.equal((await ping(port, id, { 'toolgate-forwarded': `10.0.0.1 ${'A'.repeat(43)}` })).status, 403)
          assert.equal((await ping(port, '0'.repeat(300))).status, 404)
        }
      })

      it('run the instance of a user once, whatever their clients are and wherever their requests arrive', async () => {
        const [{ client: early }, modern] = [await connect(), await connectModern()]
        const pids = await Promise.all(
          [early, modern, early, modern, modern, early].map((one) => call(one, 'mine__pid')),
        )
        assert.equal(new Set(pids).size, 1, pids.join())
        const other = await connectModern(KEYS.operator)
        assert.equal(pids.includes(await call(other, 'mine__pid')), false)
      })

      it('carry the questions of a server to clients of both eras, with progress', async () => {
        const [{ client }, modern] = [await connect(), await connectModern()]
        const progress: number[] = []
        const options = { onprogress: (one: { progress: number }) => progress.push(one.progress) }
        const { content } = await client.callTool({ name: 'asks__greet', arguments: { times: 3 } }, undefined, options)
        assert.deepEqual(content, [{ type: 'text', text: 'Hello Vera and Vera and Vera.' }])
        assert.deepEqual(progress, [1, 2, 3])
        progress.length = 0
        const late = await modern.callTool({ name: 'asks__greet', arguments: { times: 3 } }, options)
        assert.deepEqual(late.content, [{ type: 'text', text: 'Hello Vera and Vera and Vera.' }])
        // In the rounds of a call, the SDK's client reports each notification twice.
        assert.deepEqual([...new Set(progress)], [1, 2, 3])
      })

      it('cancel a call at the replica that runs it', async () => {
        const { client } = await connect()
        client.setRequestHandler(ElicitRequestSchema, () => new Promise(() => {}))
        const stop = new AbortController()
        const options = { signal: stop.signal }
        const calling = client.callTool({ name: 'asks__greet', arguments: { times: 7 } }, undefined, options)
        calling.catch(() => undefined)
        const log = () => (existsSync(asked()) ? readFileSync(asked(), 'utf8') : '')
        await until(() => log().includes('start 7'))
        stop.abort()
        await assert.rejects(calling)
        await until(() => log().includes('cancelled 7'))
      })

      it('announce a changed list to clients of both eras, whichever replica has their streams', async () => {
        const [{ client }, modern] = [await connect(), await connectModern()]
        let [early, late] = [0, 0]
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => void early++)
        modern.setNotificationHandler('notifications/tools/list_changed', () => void late++)
        const listening = await modern.listen({ toolsListChanged: true })
        await client.listTools()
        write(ports[1] ?? 0, '[{ allow: ["own:*"] }]')
        const published = await runCommand(`http://127.0.0.1:${ports[1]}`, 'reload', '--publish')
        assert.equal(published.code, 0, published.err)
        await until(() => early > 0 && late > 0)
        assert.ok((await client.listTools()).tools.every(({ name }) => name.startsWith('own__')))
        await listening.close()
      })
    })

    describe('of which one stops', () => {
      beforeEach(startAll)
      afterEach(async () => {
        await leave()
        await stopAll()
      })

      it('take over from one that was killed: its sessions go on, and a lost instance is said once', async (t) => {
        // This one has nothing yet.
        await gateways.shift()?.close()
        const [port = 0] = ports
        const args = ['--conditions=toolgate-source', REPLICA, write(port)]
        const killed = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
        t.after(() => killed.kill('SIGKILL'))
        await once(killed.stdout, 'data')
        const client = new Client({ name: 'test', version: '1' })
        const own = `http://127.0.0.1:${port}/mcp`
        const requestInit = { headers: { authorization: `Bearer ${KEYS.viewer}` } }
        await client.connect(new StreamableHTTPClientTransport(new URL(own), { requestInit }))
        clients.push(client)
        const pid = await call(client, 'mine__pid')
        const session = (client.transport as StreamableHTTPClientTransport).sessionId ?? ''
        killed.kill('SIGKILL')
        await once(killed, 'exit')
        const again = await connectModern()
        assert.match((await call(again, 'mine__pid')) ?? '', /instance_lost: its server has lost what it kept for you/)
        const next = await call(again, 'mine__pid')
        assert.match(next ?? '', /^\d+$/)
        assert.notEqual(next, pid)
        for (const other of ports.slice(1)) assert.equal((await ping(other, session)).status, 200)
      })

      it('go on with the sessions of one that stops: no call fails while all are replaced, one by one', async () => {
        const { client } = await connect()
        let updates = 0
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void updates++)
        await client.subscribeResource({ uri: 'file:///work/a.txt' })
        await client.callTool({ name: 'request_tools', arguments: { group: 'closed' } })
        const isOpen = async () => (await client.listTools()).tools.some(({ name }) => name === 'own__fail')
        assert.equal(await isOpen(), true)
        const rolling = { isDone: false, calls: 0 }
        const calling = (async () => {
          for (; !rolling.isDone; rolling.calls++) {
            const word = `word ${rolling.calls}`
            assert.equal(await echo(client, word), word)
          }
        })()
        calling.catch(() => undefined)
        for (const port of ports) {
          await gateways.shift()?.close()
          await start(port)
          await inTurn()
        }
        rolling.isDone = true
        await calling
        assert.ok(rolling.calls > 20, String(rolling.calls))
        assert.equal(await isOpen(), true)
        updates = 0
        await until(() => {
          notes.updated('file:///work/a.txt')
          return updates > 0
        })
      })

      it('go on with the sessions of all after all have stopped, but not with ended ones', async () => {
        const [{ client }, { transport }] = [await connect(), await connect()]
        const ended = transport.sessionId ?? ''
        await transport.terminateSession()
        await Promise.all(gateways.splice(0).map((gateway) => gateway.close()))
        for (const port of ports) await start(port)
        await inTurn()
        assert.equal(await echo(client, 'again'), 'again')
        for (const port of ports) assert.equal((await ping(port, ended)).status, 404)
      })

      it('bring a session to the home that its user has got meanwhile', async () => {
        const [{ client, transport }, first, second] = [await connect(), randomUUID(), randomUUID()]
        await echo(client, 'here')
        // As if it had begun before there was a home: its row names another live replica.
        const [{ owner: home } = {}] = await postgres.run("SELECT owner FROM toolgate.owners WHERE key LIKE 'home/%'")
        const live = await postgres.run('SELECT incarnation, url FROM toolgate.replicas')
        const other = live.find(({ incarnation }) => incarnation !== home)?.['incarnation'] as string
        const portOf = (isHome: boolean) =>
          Number(new URL(live.find(({ incarnation }) => (incarnation === home) === isHome)?.['url'] as string).port)
        const begun = transport.sessionId ?? ''
        for (const id of [first, second])
          await postgres.run(
            `INSERT INTO toolgate.owners SELECT 'session/${id}', '${other}', content, used_at, 0 FROM toolgate.owners WHERE key = 'session/${begun}'`,
          )
        // The first request arrives at the home, or at another replica, which forwards it there.
        assert.equal((await ping(portOf(true), first)).status, 200)
        assert.equal((await ping(portOf(false), second)).status, 200)
        for (const id of [first, second]) {
          const end = { method: 'DELETE', headers: { authorization: `Bearer ${KEYS.viewer}`, 'mcp-session-id': id } }
          assert.equal((await send(`${url}/mcp`, end)).status, 200)
          for (const port of ports) assert.equal((await ping(port, id)).status, 404)
        }
      })
    })
  })
})
