import assert from 'node:assert/strict'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { after, afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApprovalsBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { CALLERS, callerConfig, KEYS } from './support/keys.ts'
import { type LivePage, openLive } from './support/live.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** The live socket on a real gateway: its messages, and who may open it. */

const ACME = 'demo-console-acme'
const BEARER = { authorization: `Bearer ${KEYS.console}` }
const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'

let upstream: RecordingServer
let gateway: TestGateway
let port: number
const pages: LivePage[] = []

before(async () => {
  upstream = await startRecordingServer([{ name: 'read' }, { name: 'pay' }])
  const reserved = await listenOn(0)
  port = (reserved.address() as { port: number }).port
  await closeServer(reserved)
  gateway = await startTestGateway({
    servers: [httpServer('up', upstream.url)],
    callers: [
      ...CALLERS,
      callerConfig(ACME, { user: 'anna', tenant: 'acme', roles: ['approver'] }, 'console'),
      callerConfig('demo-acme-agent', { user: 'bot', tenant: 'acme' }),
    ],
    groups: [
      {
        name: 'web',
        tools: ['up:read'],
        visibility: 'conditional',
        dependsOn: [],
        availableWhen: [{ tcp: { host: '127.0.0.1', port } }],
        suggestion: 'Start it.',
      },
      { name: 'money', tools: ['up:pay'], visibility: 'always', dependsOn: [], availableWhen: [] },
    ],
    policy: [{ ask: ['up:pay'] }],
  })
})

after(async () => {
  await gateway?.close()
  await upstream?.close()
})

afterEach(async () => {
  for (const { socket } of pages.splice(0)) socket.terminate()
  await sleep(10)
})

async function open(headers: Readonly<Record<string, string>> = BEARER): Promise<LivePage> {
  const page = await openLive(gateway.url, headers)
  pages.push(page)
  return page
}

describe('/api/live', () => {
  it('sends all groups at once, as GET /api/groups does', async () => {
    const page = await open()
    const [first] = page.of('groups')
    assert.equal(page.messages[0], first)
    assert.deepEqual(
      first?.groups.map(({ name, badge }) => [name, badge]),
      [
        ['web', 'unavailable'],
        ['money', 'always'],
      ],
    )
  })

  it('sends only the group whose port opens and closes', async () => {
    const page = await open()
    const badges = () => page.of('groups').map(({ groups }) => groups.map(({ name, badge }) => `${name} ${badge}`))
    const server = await listenOn(port)
    try {
      await until(() => badges().at(-1)?.join() === 'web available')
    } finally {
      await closeServer(server)
    }
    await until(() => badges().at(-1)?.join() === 'web unavailable')
    assert.match(page.of('groups').at(-1)?.groups[0]?.reason ?? '', /nothing listens|did not answer/)
    await until(() => page.of('audit').some(({ record }) => record.reason === 'unavailable'))
    const records = page.of('audit').filter(({ record }) => record.event === 'group_changed')
    assert.deepEqual(
      records.map(({ record }) => `${record.detail?.split(':')[0]} ${record.reason}`),
      ['web available', 'web unavailable'],
    )
  })

  it('sends every record once, in the order of seq', async () => {
    const page = await open()
    for (let i = 0; i < 30; i++) void gateway.call('viewer', MODERN, 'up__none', {})
    await until(() => page.of('audit').length >= 30)
    const seqs = page.of('audit').map(({ record }) => record.seq)
    assert.deepEqual(
      seqs,
      Array.from(seqs, (_, i) => (seqs[0] as number) + i),
    )
    const { body } = await gateway.api('/api/audit?limit=1')
    assert.deepEqual((body as { records: unknown[] }).records[0], page.of('audit').at(-1)?.record)
  })

  it('sends approvals when they are requested and decided, with secrets masked', async () => {
    const page = await open()
    await gateway.call('viewer', MODERN, 'up__pay', { token: SECRET })
    await until(() => page.of('approval').length === 1)
    const asked = page.of('approval')[0]?.approval
    assert.equal(asked?.status, 'pending')
    assert.ok(!JSON.stringify(page.messages).includes(SECRET))
    const { body } = await gateway.api('/api/approvals?status=pending')
    // Who may decide it depends on who reads the list, so the live message does not say it.
    const { mayDecide, deciders, ...listed } = (body as ApprovalsBody).approvals[0] ?? {}
    assert.deepEqual(listed, asked)
    assert.deepEqual([mayDecide, deciders], [true, ['owner']])
    await gateway.api(`/api/approvals/${asked?.id}`, { method: 'POST', body: { decision: 'reject', reason: 'No.' } })
    await until(() => page.of('approval').length === 2)
    assert.equal(page.of('approval')[1]?.approval.status, 'rejected')
  })

  it('sends a person with a tenant only the messages of that tenant', async () => {
    const mine = await open({ authorization: `Bearer ${ACME}` })
    const all = await open()
    await gateway.call('viewer', MODERN, 'up__pay', { n: 1 })
    await send(gateway.mcpUrl, await callAs('demo-acme-agent', 'up__pay'))
    await until(() => mine.of('approval').length === 1 && all.of('approval').length === 2)
    await until(() => mine.of('audit').length === 1 && all.of('audit').length === 2)
    await sleep(100)
    assert.deepEqual(
      mine.of('approval').map(({ approval }) => approval.tenant),
      ['acme'],
    )
    assert.deepEqual(
      mine.of('audit').map(({ record }) => record.tenant),
      ['acme'],
    )
  })
})

describe('/api/live is refused', () => {
  const refused = async (headers: Readonly<Record<string, string>>, status: number) => {
    await assert.rejects(openLive(gateway.url, headers), { message: String(status) })
  }

  it('without a key or a login, with a wrong key, and to an agent', async () => {
    await refused({}, 401)
    await refused({ authorization: 'Bearer wrong' }, 401)
    await refused({ cookie: 'toolgate_session=x' }, 401)
    await refused({ authorization: `Bearer ${KEYS.admin}` }, 403)
  })

  it('to a page of another site, even with our cookie or a key', async () => {
    const cookie = await login()
    await refused({ cookie, origin: 'http://evil.example' }, 403)
    await refused({ cookie, origin: 'null' }, 403)
    await refused({ cookie }, 403)
    await refused({ ...BEARER, origin: 'http://evil.example' }, 403)
    await refused({ ...BEARER, host: 'evil.example' }, 403)
    await open({ cookie, origin: gateway.url })
  })

  it('at any other path, and for any other protocol', async () => {
    for (const path of ['/mcp', '/api/tools', '/', '/api/live/x'])
      assert.match(await raw(`GET ${path} HTTP/1.1\r\n${UPGRADE}`), /^HTTP\/1.1 404 /, path)
    assert.match(await raw(`POST /api/live HTTP/1.1\r\n${UPGRADE}`), /^HTTP\/1.1 404 /)
  })

  it('without the headers of RFC 6455', async () => {
    assert.match(
      await raw(
        `GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: ${BEARER.authorization}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
      ),
      /^HTTP\/1.1 4\d\d /,
    )
  })

  it('to the twenty-first page of one person', async () => {
    for (let i = 0; i < 20; i++) await open()
    await refused(BEARER, 429)
    await open({ authorization: `Bearer ${ACME}` })
  })
})

describe('/api/live ends', () => {
  it('at the logout of its own session, and of no other', async () => {
    const [cookie, other] = [await login(), await login()]
    const page = await open({ cookie, origin: gateway.url })
    const stays = await open({ cookie: other, origin: gateway.url })
    await send(`${gateway.url}/api/logout`, { headers: { cookie, origin: gateway.url } })
    await until(() => page.closed())
    assert.deepEqual(page.closed(), [4401, 'the session has ended'])
    assert.equal(stays.closed(), undefined)
  })

  it('for a client that sends a message', async () => {
    const page = await open()
    page.socket.send('hello')
    await until(() => page.closed())
    assert.equal(page.closed()?.[0], 1003)
    const large = await open()
    large.socket.send('x'.repeat(100_000))
    await until(() => large.closed())
    assert.equal(large.closed()?.[0], 1009)
  })

  it('when the gateway stops, even for a client that does not answer', async () => {
    const own = await startTestGateway({})
    const page = await openLive(own.url, BEARER)
    const silent = await stuck(own.port)
    await own.close()
    await until(() => page.closed())
    assert.equal(page.closed()?.[0], 1001)
    await until(() => silent.destroyed || silent.readyState === 'closed' || silent.readableEnded)
    silent.destroy()
  })
})

const UPGRADE =
  'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
    setTimeout(() => socket.destroy(), 2000).unref()
  })
}

/** A client that opens the socket and never reads or answers. */
async function stuck(at: number): Promise<Socket> {
  const socket = connect(at, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `GET /api/live HTTP/1.1\r\nAuthorization: ${BEARER.authorization}\r\n${UPGRADE.replace('Host: x', `Host: 127.0.0.1:${at}`)}`,
  )
  await new Promise((resolve) => socket.once('data', resolve))
  return socket
}

async function login(): Promise<string> {
  const answer = await send(`${gateway.url}/api/login`, {
    headers: { 'content-type': 'application/json', origin: gateway.url },
    body: JSON.stringify({ key: KEYS.console }),
  })
  return (answer.headers['set-cookie']?.[0] ?? '').split(';')[0] as string
}

async function callAs(key: string, name: string) {
  const { toMessage } = await import('./support/rpc.ts')
  const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: {} })
  return { headers: { ...headers, authorization: `Bearer ${key}` }, body: JSON.stringify(body) }
}

function listenOn(at: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(at, '127.0.0.1', () => resolve(server))
  })
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
