import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { LogLine } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { createAuthority } from './support/certificates.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { openLive } from './support/live.ts'
import { freePort, type OwnServer } from './support/own-server.ts'
import { type Behind, startCaddy, startNginx } from './support/proxies.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, toMessage } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

/** The proxies of `deploy/`, with TLS, in front of a real gateway, and its own TLS: what clients of both eras get. */

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const BEARER = { authorization: `Bearer ${KEYS.console}` }
const INFO = { name: 'test', version: '1' }

withBinaries(['nginx', 'caddy', 'openssl'], ({ nginx, caddy, openssl }) => {
  describe('behind nginx', () => runsWithTls(openssl, (behind) => startNginx(nginx, behind)))
  describe('behind Caddy', () => runsWithTls(openssl, (behind) => startCaddy(caddy, behind)))
  describe('with listen.tls', () => runsWithTls(openssl))
})

/** Without a proxy, the gateway itself serves HTTPS. */
function runsWithTls(openssl: string, startProxy?: (behind: Behind) => Promise<OwnServer>): void {
  const folder = tempFolder()
  const auditFile = join(folder.path, 'audit.jsonl')
  let upstreams: readonly RecordingServer[]
  let gateway: TestGateway
  let proxy: OwnServer | undefined
  let url: string

  before(async () => {
    const certificate = createAuthority(openssl, folder.path).issue('front')
    const port = await freePort()
    url = `https://localhost:${port}`
    const hang = {
      name: 'hang',
      run: (_args: object, { signal }: { signal: AbortSignal }) =>
        new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    }
    upstreams = [
      await startRecordingServer([hang, { name: 'pay' }]),
      await startRecordingServer([hang], { era: 'modern' }),
    ]
    gateway = await startTestGateway({
      listen: startProxy
        ? { host: '127.0.0.1', port: 0, proxies: ['127.0.0.1'] }
        : { host: '127.0.0.1', port, tls: certificate },
      publicUrl: url,
      servers: [
        nodeServer('slow', [SLOW]),
        ...upstreams.map((one) => httpServer(one.era, one.url, { callTimeoutMs: 60_000 })),
      ],
      policy: [{ allow: ['*'], ask: ['legacy:pay'] }],
      audit: { store: 'jsonl', path: auditFile, mode: 'batched', checkpoints: false },
    })
    proxy = await startProxy?.({ port: gateway.port, at: port, ...certificate })
  })

  after(async () => {
    await gateway?.close()
    await proxy?.stop()
    await Promise.all((upstreams ?? []).map((upstream) => upstream.close()))
    folder.remove()
  })

  const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }

  for (const mode of [{ pin: MODERN }, 'legacy'] as const)
    it(`the SDK's client lists, calls and hears progress while a call runs (${JSON.stringify(mode)})`, async () => {
      const client = new Client(INFO, { versionNegotiation: { mode } })
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
      const { tools } = await client.listTools()
      assert.ok(tools.some(({ name }) => name === 'slow__until'))
      const file = join(folder.path, JSON.stringify(mode).replaceAll(/\W/g, ''))
      // The call ends only once its progress has arrived: an answer that is held back would never come.
      const answer = await client.callTool(
        { name: 'slow__until', arguments: { file } },
        { onprogress: () => writeFileSync(file, '') },
      )
      assert.match(JSON.stringify(answer.content), /done after all/)
      await client.close()
    })

  it("subscriptions/listen reaches the SDK's client", async () => {
    let heard = 0
    const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void heard++ } }
    const client = new Client(INFO, { listChanged, versionNegotiation: { mode: { pin: MODERN } } })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
    await until(async () => (await lists()) === 1)
    gateway.gate.setPolicy({ allow: ['*'], deny: ['slow:long'] })
    await until(() => heard > 0)
    await client.close()
    // The proxy tells the gateway that the client has gone.
    await until(async () => (await lists()) === 0)
  })

  it("the held GET stream reaches the SDK's client of earlier revisions", async () => {
    let heard = 0
    const client = new ClientV1(INFO)
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard++)
    await client.connect(new TransportV1(new URL(`${url}/mcp`), { requestInit }) as never)
    await until(async () => (await lists()) === 1)
    gateway.gate.setPolicy({ allow: ['*'], ask: ['legacy:pay'] })
    await until(() => heard > 0)
    await client.close()
    await until(async () => (await lists()) === 0)
  })

  it('a client that leaves cancels its call', async () => {
    const leaving = new AbortController()
    const [, modern] = upstreams
    const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'modern__hang', arguments: {} })
    const asked = send(`${url}/mcp`, {
      headers: { ...headers, ...requestInit.headers },
      body: JSON.stringify(body),
      signal: leaving.signal,
    })
    await until(() => modern?.calls('hang').length === 1)
    leaving.abort()
    await assert.rejects(asked)
    await until(() => modern?.cancelled === 1)
  })

  it('/api/live sends each attempt as it happens', async () => {
    const page = await openLive(url, BEARER)
    await gateway.call('admin', MODERN, 'slow__echo')
    await until(() => page.of('audit').length > 0)
    page.socket.terminate()
  })

  it('a login gets a cookie for TLS only, and changes need a page of the public name', async () => {
    const login = (origin: string) =>
      send(`${url}/api/login`, {
        headers: { origin, 'content-type': 'application/json' },
        body: JSON.stringify({ key: KEYS.console }),
      })
    const answer = await login(url)
    assert.equal(answer.status, 200)
    assert.match(String(answer.headers['set-cookie']), /HttpOnly; SameSite=Strict; Secure/)
    assert.equal((await login('https://elsewhere.example')).status, 403)
    const foreign = await send(`${url}/api/session`, {
      method: 'GET',
      headers: { ...BEARER, host: 'elsewhere.example' },
    })
    assert.doesNotMatch(foreign.text, /owner/)
  })

  it('the link of an approval is one of the public name', async () => {
    const _meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }
    const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'legacy__pay', arguments: {}, _meta })
    const answer = await send(`${url}/mcp`, {
      headers: { ...headers, ...requestInit.headers },
      body: JSON.stringify(body),
    })
    const link = /https:\/\/localhost:\d+\/\S+?(?=["\\\s]|$)/.exec(answer.text)?.[0] ?? assert.fail(answer.text)
    assert.ok(link.startsWith(`${url}/`), link)
    const page = await send(link, { method: 'GET', headers: BEARER })
    assert.match(page.text, /legacy:pay/)
  })

  // The gateway itself speaks HTTP/1.1.
  if (startProxy)
    it('HTTP/2 reaches it under the public name', async () => {
      const { headers, body } = toMessage(MODERN, 'tools/list')
      const session = connect(url)
      const stream = session.request({ ':method': 'POST', ':path': '/mcp', ...headers, ...requestInit.headers })
      stream.end(JSON.stringify(body))
      const [answered] = (await once(stream, 'response')) as [{ readonly ':status'?: number }]
      assert.equal(answered[':status'], 200)
      assert.match(await readText(stream), /slow__until/)
      session.close()
    })

  it('as much is taken as by the gateway itself', async () => {
    const call = (bytes: number) => {
      const args = { text: 'x'.repeat(bytes) }
      const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'slow__echo', arguments: args })
      return send(`${url}/mcp`, { headers: { ...headers, ...requestInit.headers }, body: JSON.stringify(body) })
    }
    assert.equal((await call(4 * 1024 * 1024 - 1000)).status, 200)
    // The gateway answers before it has read everything, which a proxy may take for a broken connection.
    const { status } = await call(4 * 1024 * 1024)
    assert.ok([413, 502].includes(status), `${status}`)
  })

  it('health is for everybody, metrics stop at the proxy', async () => {
    const get = async (path: string) => (await send(url + path, { method: 'GET', headers: BEARER })).status
    assert.deepEqual(
      [await get('/healthz'), await get('/readyz'), await get('/metrics')],
      [200, 200, startProxy ? 404 : 200],
    )
  })

  it('wrong keys count for the address of the client, whatever it claims', async () => {
    const headers = { authorization: 'Bearer no-such-key', 'x-forwarded-for': '203.0.113.9' }
    const wrong = await send(`${url}/api/session`, { method: 'GET', headers, localAddress: '127.0.0.2' })
    assert.equal(wrong.status, 401)
    await gateway.close()
    const records = readFileSync(auditFile, 'utf8').trimEnd().split('\n')
    const failed = records.map((line) => JSON.parse(line) as { event: string; detail?: string })
    const details = failed.filter(({ event }) => event === 'login_failed').map(({ detail }) => detail)
    assert.deepEqual(
      details.map((detail) => detail?.split(':')[0]),
      ['127.0.0.2'],
    )
    assert.deepEqual(
      gateway.log.filter(({ level }: LogLine) => level === 'error'),
      [],
    )
  })

  async function lists(): Promise<number> {
    const { text } = await send(`${gateway.url}/metrics`, { method: 'GET', headers: BEARER })
    return Number(/^toolgate_list_streams (\d+)$/m.exec(text)?.[1])
  }
}
