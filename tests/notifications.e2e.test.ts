import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { send } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { type Noted, type NoticeReceiver, startNoticeReceiver } from './support/notice-receiver.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Receivers of notifications, as a gateway reaches them. */

type ApprovalsConfig = NonNullable<GatewayConfig['approvals']>
type Receiver = NonNullable<ApprovalsConfig['notify']>[number]

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const PUBLIC_URL = 'https://tools.example.com'
let server: RecordingServer
let receiver: NoticeReceiver
let gateways: TestGateway[] = []

before(async () => {
  const inputSchema = { type: 'object', properties: { cents: { type: 'number' }, to: { type: 'string' } } }
  server = await startRecordingServer([{ name: 'send', inputSchema }])
})
after(() => server.close())
beforeEach(async () => {
  receiver = await startNoticeReceiver()
})
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()))
  gateways = []
  await receiver.close()
})

async function start(
  notify: readonly Partial<Receiver>[],
  given: Partial<GatewayConfig> = {},
  approvals: Partial<ApprovalsConfig> = {},
  reread?: () => Partial<GatewayConfig>,
): Promise<TestGateway> {
  const gateway = await startTestGateway(
    {
      servers: [httpServer('pay', server.url)],
      callers: [
        ...CALLERS,
        callerConfig('key-of-acme', { user: 'ann', tenant: 'acme', roles: ['viewer'], agent: 'desk' }),
        callerConfig('console-of-acme', { user: 'bo', tenant: 'acme', roles: ['approver'] }, 'console'),
      ],
      policy: [{ ask: [{ match: 'pay:send', input: 'input.cents > 100', message: 'Payments need a person.' }] }],
      publicUrl: PUBLIC_URL,
      ...given,
      approvals: { ...approvals, notify: notify.map(toReceiver) },
    },
    reread,
  )
  gateways.push(gateway)
  return gateway
}

function toReceiver(one: Partial<Receiver>, i: number): Receiver {
  return { name: `r${i + 1}`, url: receiver.url, format: 'json', ...one }
}

const pay = (gateway: TestGateway, cents: number, to = 'bob@corp') =>
  gateway.call('viewer', MODERN, 'pay__send', { cents, to })
async function got(count: number): Promise<readonly Noted[]> {
  await until(() => receiver.got.length >= count)
  return receiver.got
}
const dataOf = ({ body }: Noted | undefined = {} as Noted) => body.data ?? {}

async function decide(gateway: TestGateway, decision: 'approve' | 'reject', reason?: string): Promise<void> {
  for (const { id } of await gateway.gate.approvals.list({ status: 'pending' }))
    await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision, ...(reason && { reason }) } })
}

describe('a receiver of signed JSON', () => {
  it('gets one message for an approval and one for its end, with what a person needs and no input', async () => {
    const gateway = await start([{ secret: SECRET }])
    await pay(gateway, 150)
    await pay(gateway, 150)
    const [requested] = await got(1)
    const [approval] = await gateway.gate.approvals.list({ status: 'pending' })
    assert.ok(requested && approval)
    assert.equal(requested.body.type, 'approval.requested')
    assert.deepEqual(dataOf(requested), {
      id: approval.id,
      status: 'pending',
      tool: 'pay:send',
      user: 'viewer',
      url: `${PUBLIC_URL}/approvals/${approval.id}`,
      why: 'Payments need a person.',
      requestedAt: new Date(approval.requestedAt).toISOString(),
      expiresAt: new Date(approval.expiresAt).toISOString(),
    })
    assert.doesNotMatch(requested.text, /150|bob@corp|input\.cents/)
    await decide(gateway, 'reject', 'too much')
    const [, ended] = await got(2)
    const { status, decidedBy, reason } = dataOf(ended)
    assert.deepEqual([ended?.body.type, status, decidedBy, reason], ['approval.ended', 'rejected', 'owner', 'too much'])
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = requested.headers
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
    const expected = createHmac('sha256', key)
      .update(`${String(id)}.${String(at)}.${requested.text}`)
      .digest('base64')
    assert.equal(signature, `v1,${expected}`)
    assert.notEqual(id, ended?.headers['webhook-id'])
  })

  it('gets the input only if the file says so, with its secrets masked', async () => {
    const gateway = await start([{ input: true }])
    await pay(gateway, 150, `ghp_${'a1B2'.repeat(9)}`)
    const [message] = await got(1)
    assert.deepEqual(dataOf(message)['input'], { cents: 150, to: '[redacted:github-token]' })
  })

  it('gets no secret that is a name', async () => {
    const token = `ghp_${'a1B2'.repeat(9)}`
    const vera = callerConfig('key-of-vera', { user: token, agent: `${token} desk` })
    const gateway = await start([{}], { callers: [...CALLERS, vera] })
    const headers = { authorization: 'Bearer key-of-vera' }
    await gateway.ask('viewer', MODERN, 'tools/call', { name: 'pay__send', arguments: { cents: 500 } }, { headers })
    const [message] = await got(1)
    const { user, client } = dataOf(message)
    assert.deepEqual([user, client], ['[redacted:github-token]', '[redacted:github-token] desk'])
    assert.ok(!message?.text.includes(token))
  })

  it('gets a number beyond 2^53 as it is, in each format', async () => {
    const formats = ['json', 'slack', 'teams'] as const
    const gateway = await start(formats.map((format) => ({ format, input: true, url: `${receiver.url}/${format}` })))
    const headers = { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' }
    const body = '{"tool":"pay:send","input":{"cents":9007199254740993,"to":"bob"}}'
    const answer = await send(`${gateway.url}/api/call`, { headers, body })
    assert.match(answer.text, /"status":"waiting"/)
    const texts = (await got(3)).map(({ text }) => text)
    assert.deepEqual(
      texts.map((text) => text.includes('9007199254740993')),
      [true, true, true],
    )
  })

  it('gets no end while another approver must still approve', async () => {
    const second = callerConfig('console-of-bea', { user: 'bea', roles: ['approver'] }, 'console')
    const policy = [{ ask: [{ match: 'pay:send', approvers: 2 }] }]
    const gateway = await start([{}], { callers: [...CALLERS, second], policy })
    await pay(gateway, 150)
    const [requested] = await got(1)
    assert.equal(dataOf(requested)['approvers'], 2)
    await decide(gateway, 'approve')
    const [approval] = await gateway.gate.approvals.list({ status: 'pending' })
    const options = { method: 'POST', body: { decision: 'approve' }, key: 'console-of-bea' }
    assert.equal((await gateway.api(`/api/approvals/${approval?.id}`, options)).status, 200)
    const [, ended, ...more] = await got(2)
    await until(async () => (await waitingOf(gateway)) === 0)
    assert.deepEqual([dataOf(ended)['status'], dataOf(ended)['decidedBy'], more], ['approved', 'bea', []])
  })

  it('learns that an approval has expired', async () => {
    const gateway = await start([{}], {}, { ttlMs: 1_500 })
    await pay(gateway, 150)
    const [, ended] = await got(2)
    assert.equal(dataOf(ended)['status'], 'expired')
  })
})

describe('a receiver for one tenant', () => {
  it('gets the approvals of this tenant alone, and one without a tenant gets all', async () => {
    const other = await startNoticeReceiver()
    try {
      const gateway = await start([{ for: ['acme'] }, { url: other.url }])
      await pay(gateway, 150)
      const headers = { authorization: 'Bearer key-of-acme' }
      await gateway.ask('viewer', MODERN, 'tools/call', { name: 'pay__send', arguments: { cents: 500 } }, { headers })
      await until(() => other.got.length === 2)
      const [message, ...more] = await got(1)
      const { user, tenant, client } = dataOf(message)
      assert.deepEqual([user, tenant, client, more], ['ann', 'acme', 'desk', []])
    } finally {
      await other.close()
    }
  })
})

describe('a chat that many approvals reach', () => {
  it('gets ten messages in a minute at most, the last one about all that wait', async () => {
    const gateway = await start([{ format: 'slack' }])
    receiver.answer = (response) => void setTimeout(() => response.end('ok'), 20)
    await Promise.all(Array.from({ length: 30 }, (_, i) => pay(gateway, 200 + i)))
    await got(10)
    await until(async () => (await waitingOf(gateway)) === 0)
    assert.equal(receiver.got.length, 10)
    assert.match(receiver.got[9]?.text ?? '', /21 more calls wait for approval/)
    assert.match(receiver.got[9]?.text ?? '', /https:\/\/tools\.example\.com\/#\/approvals/)
  })
})

async function waitingOf(gateway: TestGateway): Promise<number> {
  const { body } = await gateway.api('/api/notifications')
  return (body as { receivers: { waiting: number }[] }).receivers.reduce((sum, { waiting }) => sum + waiting, 0)
}

describe('a receiver that fails', () => {
  it('is asked again with the same id, and shows as failing meanwhile', async () => {
    const gateway = await start([{}])
    receiver.answer = (response) => void response.writeHead(503, { 'retry-after': '1' }).end('down\nfor now')
    await pay(gateway, 150)
    await got(1)
    const failing = await until(async () => {
      const ready = (await gateway.api('/readyz')).body as { status: string; notifications?: object }
      return ready.notifications && ready
    })
    assert.deepEqual(
      [failing?.status, failing?.notifications],
      ['ready', [{ name: 'r1', why: 'it answered 503: down for now' }]],
    )
    assert.match(JSON.stringify((await gateway.api('/api/warnings')).body), /notify_failing.*r1/)
    receiver.answer = (response) => void response.end('ok')
    const [first, second] = await got(2)
    assert.equal(first?.headers['webhook-id'], second?.headers['webhook-id'])
    await until(() => gateway.log.some(({ message }) => message === 'the receiver "r1" takes notifications again'))
    const metrics = await send(`${gateway.url}/metrics`, {
      method: 'GET',
      headers: { authorization: `Bearer ${KEYS.console}` },
    })
    assert.match(metrics.text, /^toolgate_notifications_total\{receiver="r1",outcome="retried"\} 1$/m)
    assert.match(metrics.text, /^toolgate_notifications_total\{receiver="r1",outcome="sent"\} 1$/m)
  })

  it('redirects, and is not followed', async () => {
    const inside = await startNoticeReceiver()
    try {
      const gateway = await start([{}])
      receiver.answer = (response) => void response.writeHead(307, { location: inside.url }).end()
      await pay(gateway, 150)
      await until(() =>
        gateway.log.some(({ detail }) => detail === 'it answered 307, a redirect, which is not followed'),
      )
      assert.deepEqual(inside.got, [])
      await failedRecord(gateway, /redirect/)
    } finally {
      await inside.close()
    }
  })

  it('answers without end, and its message counts as taken', async () => {
    const gateway = await start([{}])
    let sent = 0
    receiver.answer = (response) => {
      response.writeHead(200)
      const write = (): void => {
        if (response.destroyed) return
        sent += 65_536
        response.write('x'.repeat(65_536), write)
      }
      write()
    }
    await pay(gateway, 150)
    await sentRecord(gateway)
    assert.ok(sent < 8 * 1024 * 1024, `${sent} bytes`)
  })

  it('refuses one message, which is not sent again', async () => {
    const gateway = await start([{}])
    receiver.answer = (response) => void response.writeHead(400).end('invalid_payload')
    await pay(gateway, 150)
    await failedRecord(gateway, /to r1: it answered 400: invalid_payload/)
    receiver.answer = (response) => void response.end('ok')
    await pay(gateway, 160)
    await sentRecord(gateway)
    assert.equal(receiver.got.length, 2)
  })

  it('does not hold up the call, nor another receiver', async () => {
    const silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    try {
      const gateway = await start([
        { url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/` },
        { name: 'ok' },
      ])
      const { result } = await pay(gateway, 150)
      assert.match(JSON.stringify(result), /Waiting for approval/)
      await got(1)
      silent.closeAllConnections()
    } finally {
      silent.close()
    }
  })
})

async function failedRecord(gateway: TestGateway, detail: RegExp): Promise<void> {
  const [record] = await recordsOf(gateway, 'notification_failed')
  assert.match(record?.detail ?? '', detail)
  assert.equal(record?.tool, 'pay:send')
}

async function sentRecord(gateway: TestGateway): Promise<void> {
  await recordsOf(gateway, 'notification_sent')
}

async function recordsOf(gateway: TestGateway, event: string) {
  const read = async () => {
    const { body } = await gateway.api(`/api/audit?event=${event}`)
    return (body as { records: { detail?: string; tool?: string }[] }).records
  }
  await until(async () => (await read()).length > 0)
  return read()
}

describe('two gateways with one state', () => {
  it('send one message, whichever is asked', async () => {
    const folder = tempFolder()
    try {
      const state = { store: 'sqlite' as const, path: join(folder.path, 'state.db') }
      const [one, two] = [await start([{}], { state }), await start([{}], { state })]
      await Promise.all([pay(one, 150), pay(two, 150)])
      await got(1)
      await decide(two, 'approve')
      await got(2)
      await until(async () => (await waitingOf(one)) + (await waitingOf(two)) === 0)
      assert.deepEqual(
        receiver.got.map(({ body }) => body.type),
        ['approval.requested', 'approval.ended'],
      )
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.close()))
      folder.remove()
    }
  })

  it('send a message that could not be queued at first', async () => {
    const folder = tempFolder()
    try {
      const path = join(folder.path, 'state.db')
      const gateway = await start([{}], { state: { store: 'sqlite', path } })
      const db = new DatabaseSync(path, { timeout: 5000 })
      const isOfQueue = `CAST(NEW.key AS TEXT) LIKE 'gateway/notifications/queue/%'`
      db.exec(`CREATE TRIGGER full BEFORE INSERT ON state WHEN ${isOfQueue} BEGIN SELECT RAISE(ABORT, 'full'); END`)
      await pay(gateway, 150)
      await until(() => gateway.log.some(({ level }) => level === 'error'))
      db.exec('DROP TRIGGER full')
      db.close()
      const [message] = await got(1)
      assert.equal(message?.body.type, 'approval.requested')
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.close()))
      folder.remove()
    }
  })

  it('send what an ended gateway has not sent', async () => {
    const folder = tempFolder()
    const { port } = receiver
    try {
      const state = { store: 'sqlite' as const, path: join(folder.path, 'state.db') }
      const one = await start([{}], { state })
      await receiver.close()
      await pay(one, 150)
      await until(() => one.log.some(({ message }) => message === 'the receiver "r1" takes no notifications'))
      await one.close()
      assert.doesNotMatch(JSON.stringify(one.log), /\/hook/)
      receiver = await startNoticeReceiver(port)
      await start([{}], { state })
      const [message] = await got(1)
      assert.equal(message?.body.type, 'approval.requested')
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.close()))
      folder.remove()
    }
  })
})

describe('a reload', () => {
  it('adds the first receiver and removes it, without a restart', async () => {
    let notify: readonly Receiver[] = []
    const gateway = await start([], {}, {}, () => ({ approvals: { notify } }))
    notify = [toReceiver({}, 0)]
    const { changes, restartNeeded } = await gateway.reload()
    assert.deepEqual([changes, restartNeeded], [[{ section: 'approvals', what: 'added', name: 'notify r1' }], []])
    await pay(gateway, 150)
    await got(1)
    notify = []
    await gateway.reload()
    await pay(gateway, 160)
    assert.deepEqual((await gateway.api('/api/notifications')).body, { receivers: [] })
    assert.equal(receiver.got.length, 1)
  })
})

describe('POST /api/notifications/test', () => {
  it('sends an example and returns what the receiver answered', async () => {
    const gateway = await start([{ format: 'teams', name: 'ops' }])
    receiver.answer = (response) => void response.writeHead(202).end()
    const { body } = await gateway.api('/api/notifications/test', { method: 'POST', body: { receiver: 'ops' } })
    assert.deepEqual(body, { receivers: [{ name: 'ops', format: 'teams', isTaken: true, text: 'it answered 202' }] })
    assert.match(receiver.got[0]?.text ?? '', /A test of Toolgate/)
    const unknown = await gateway.api('/api/notifications/test', { method: 'POST', body: { receiver: 'opps' } })
    assert.equal(unknown.status, 404)
    const asTenant = { method: 'POST', body: {}, key: 'console-of-acme' }
    assert.equal((await gateway.api('/api/notifications/test', asTenant)).status, 403)
    const { body: rows } = await gateway.api('/api/notifications', { key: 'console-of-acme' })
    assert.deepEqual(rows, { receivers: [] })
    assert.equal((await gateway.api('/api/notifications', { key: KEYS.console })).status, 200)
  })
})
