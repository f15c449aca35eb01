import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { loadConfig, type ReadyBody } from '@toolgate/gateway'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { withBinaries } from './support/binaries.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { startHaproxy } from './support/haproxy.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { freePort, type OwnServer } from './support/own-server.ts'
import { ownPostgres } from './support/own-stores.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')

withBinaries(['postgres', 'initdb', 'haproxy'], (paths) => {
  describe('replicas behind a load balancer without stickiness', () => {
    const postgres = ownPostgres(paths)
    const gateways: TestGateway[] = []
    const clients: Client[] = []
    let folder: ReturnType<typeof tempFolder>
    let proxy: OwnServer
    let ports: readonly number[]
    let url: string

    before(async () => {
      ports = await Promise.all([freePort(), freePort(), freePort()])
      proxy = await startHaproxy(paths.haproxy, await freePort(), ports)
      url = `http://127.0.0.1:${proxy.port}`
    })
    after(() => proxy.stop())

    const start = async (port: number) => {
      const file = join(folder.path, `${port}.yaml`)
      writeFileSync(
        file,
        `
listen: { port: ${port} }
publicUrl: "${url}"
drainMs: 5000
servers: { own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy: [{ allow: ["*"] }]
audit: { store: memory }
stores: { postgres: "${postgres.url}" }
`,
      )
      const gateway = await startTestGateway(loadConfig(file))
      gateways.push(gateway)
      return gateway
    }
    const connect = async (key: string = KEYS.viewer) => {
      const client = new Client({ name: 'test', version: '1' })
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
    const echo = async (client: Client, word: string) => {
      const { content } = await client.callTool({ name: 'own__echo', arguments: { word } })
      return (content as { text: string }[])[0]?.text
    }

    beforeEach(async () => {
      await postgres.empty()
      folder = tempFolder()
      // The first publishes its file.
      for (const port of ports) await start(port)
      await inTurn()
    })
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close()))
      await Promise.all(gateways.splice(0).map((gateway) => gateway.close()))
      folder.remove()
    })

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

    it('go on with the sessions of one that stops: no call fails while all are replaced, one by one', async () => {
      const { client } = await connect()
      const rolling = { isDone: false, calls: 0 }
      const calling = (async () => {
        for (; !rolling.isDone; rolling.calls++) {
          const word = `word ${rolling.calls}`
          assert.equal(await echo(client, word), word)
        }
      })()
      for (const port of ports) {
        await gateways.shift()?.close()
        await start(port)
        await inTurn()
      }
      rolling.isDone = true
      await calling
      assert.ok(rolling.calls > 20, String(rolling.calls))
    })
  })
})
