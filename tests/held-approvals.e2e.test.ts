import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { GatewayConfig } from '@toolgate/gateway'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Calls that are held open until a person decides, at each door. */

let server: RecordingServer
let gateway: TestGateway

before(async () => {
  const inputSchema = { type: 'object', properties: { cents: { type: 'number' } } }
  server = await startRecordingServer([{ name: 'send', inputSchema }])
})
after(() => server.close())
beforeEach(() => server.forget())
afterEach(() => gateway.close())

async function start(ms: number, given: Partial<GatewayConfig> = {}, reread?: () => Partial<GatewayConfig>) {
  gateway = await startTestGateway(
    {
      servers: [httpServer('pay', server.url)],
      policy: [{ ask: ['pay:send'] }],
      limits: ['pay:send:1/3600'],
      approvals: { wait: { ms } },
      ...given,
    },
    reread,
  )
}

const pending = () => gateway.gate.approvals.list({ status: 'pending' })

async function decide(decision: 'approve' | 'reject', reason?: string): Promise<void> {
  const approval = await until(async () => (await pending())[0])
  const { status } = await gateway.api(`/api/approvals/${approval?.id}`, {
    method: 'POST',
    body: { decision, ...(reason && { reason }) },
  })
  assert.equal(status, 200)
}

const textOf = ({ result }: RpcAnswer) => (result?.content ?? []).map(({ text }) => text ?? '').join('\n')
const call = (era: Era, cents: number) => gateway.call('viewer', era, 'pay__send', { cents })

async function callOverHttp(cents: number): Promise<string> {
  const headers = { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ tool: 'pay:send', input: { cents } })
  const { text } = (await send(`${gateway.url}/api/call`, { method: 'POST', headers, body })).json() as { text: string }
  return text
}

const DOORS: readonly (readonly [name: string, call: (cents: number) => Promise<string>])[] = [
  ['MCP of 2026-07-28', async (cents) => textOf(await call(MODERN, cents))],
  ['MCP of 2025-06-18', async (cents) => textOf(await call('2025-06-18', cents))],
  ['POST /api/call', callOverHttp],
]

for (const [name, callAt] of DOORS)
  describe(`a held call (${name})`, () => {
    it('runs once a person has approved', async () => {
      await start(60_000)
      const calling = callAt(1)
      await decide('approve')
      assert.equal(await calling, 'send ran')
      assert.equal(server.calls('send').length, 1)
    })

    it('is refused once a person has rejected', async () => {
      await start(60_000)
      const calling = callAt(1)
      await decide('reject', 'not today')
      assert.match(await calling, /not today/)
      assert.equal(server.calls('send').length, 0)
    })

    it('gets the text when the time is over', async () => {
      await start(50)
      assert.match(await callAt(1), /^Waiting for approval of .* can decide at http/)
    })

    it('gets the text when the gateway stops', async () => {
      await start(60_000)
      const calling = callAt(1)
      await until(async () => (await pending()).length > 0)
      await Promise.all([gateway.close(), calling.then((text) => assert.match(text, /^Waiting for approval of /))])
    })
  })

describe('a held call', () => {
  it('takes no limit while it waits', async () => {
    await start(60_000, { policy: [{ ask: [{ match: 'pay:send', input: 'input.cents > 100' }] }] })
    const calling = call(MODERN, 500)
    await until(async () => (await pending()).length > 0)
    assert.equal(textOf(await call(MODERN, 1)), 'send ran')
    await decide('approve')
    assert.match(textOf(await calling), /rate limited/)
    assert.equal(server.calls('send').length, 1)
  })

  it('is decided by the policy of the moment at which it runs', async () => {
    let policy: GatewayConfig['policy'] = [{ ask: ['pay:send'] }]
    await start(60_000, {}, () => ({ policy }))
    const calling = call(MODERN, 1)
    await until(async () => (await pending()).length > 0)
    policy = [{ ask: ['pay:send'], deny: [{ match: 'pay:send', message: 'Closed.' }] }]
    await gateway.reload()
    await decide('approve')
    assert.match(textOf(await calling), /Closed\./)
    assert.equal(server.calls('send').length, 0)
  })

  it('waits for all of several approvers', async () => {
    const second = callerConfig('console-of-bea', { user: 'bea', roles: ['approver'] }, 'console')
    await start(60_000, { callers: [...CALLERS, second], policy: [{ ask: [{ match: 'pay:send', approvers: 2 }] }] })
    const calling = call(MODERN, 1)
    await decide('approve')
    const [approval] = await pending()
    const options = { method: 'POST', body: { decision: 'approve' }, key: 'console-of-bea' }
    assert.equal((await gateway.api(`/api/approvals/${approval?.id}`, options)).status, 200)
    assert.equal(textOf(await calling), 'send ran')
    assert.equal((await gateway.gate.approvals.list({})).length, 1)
  })

  it('runs with the input that the approver changed', async () => {
    await start(60_000, { policy: [{ ask: [{ match: 'pay:send', edit: true }] }] })
    const calling = call(MODERN, 500)
    const approval = await until(async () => (await pending())[0])
    const options = { method: 'POST', body: { decision: 'approve', input: { cents: 5 } } }
    assert.equal((await gateway.api(`/api/approvals/${approval?.id}`, options)).status, 200)
    assert.match(textOf(await calling), /send ran/)
    assert.match(JSON.stringify(server.calls('send')), /"cents":5[^0]/)
  })

  it('gets the text when its approval has expired, and asks nobody again', async () => {
    await start(60_000, { approvals: { wait: { ms: 60_000 }, ttlMs: 300 } })
    assert.match(textOf(await call(MODERN, 1)), /^Waiting for approval of /)
    assert.equal((await gateway.gate.approvals.list({})).length, 1)
  })

  it('sends progress to a client that wants it, with who can decide', async () => {
    await start(60_000)
    const params = { name: 'pay__send', arguments: { cents: 1 }, _meta: { progressToken: 'p' } }
    const answering = gateway.ask('viewer', MODERN, 'tools/call', params)
    await decide('approve')
    const [progress, answer] = (await answering).events() as readonly {
      method?: string
      params?: object
      result?: object
    }[]
    assert.equal(progress?.method, 'notifications/progress')
    const { message, progress: at, progressToken } = (progress?.params ?? {}) as Record<string, unknown>
    assert.match(String(message), /^Waiting for approval of pay__send\. owner or somebody .* can decide at http/)
    assert.ok(Number(at) > 0 && Number(at) < 0.001)
    assert.equal(progressToken, 'p')
    assert.match(JSON.stringify(answer?.result), /send ran/)
  })

  it('makes no call when its client has gone', async () => {
    await start(60_000)
    const gone = new AbortController()
    const params = { name: 'pay__send', arguments: { cents: 1 } }
    const asking = gateway.ask('viewer', MODERN, 'tools/call', params, { signal: gone.signal }).catch(() => 'gone')
    await until(async () => (await pending()).length > 0)
    gone.abort()
    assert.equal(await asking, 'gone')
    await decide('approve')
    const [approval] = await gateway.gate.approvals.list({ limit: 1 })
    assert.equal(approval?.status, 'approved')
    assert.equal(server.calls('send').length, 0)
  })

  it('is not held for a client that opens links', async () => {
    await start(60_000)
    const capabilities = { elicitation: { url: {} } }
    const params = {
      name: 'pay__send',
      arguments: { cents: 1 },
      _meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities },
    }
    const { result } = (await gateway.ask('viewer', MODERN, 'tools/call', params)).json() as RpcAnswer
    assert.match(JSON.stringify(result), /inputRequests/)
  })

  it('is not held without the setting', async () => {
    await start(0)
    assert.match(textOf(await call(MODERN, 1)), /^Waiting for approval/)
  })
})

describe('a held call of a client on stdio', () => {
  it('runs once a person has approved, and its client gets progress meanwhile', async () => {
    await start(60_000)
    const client = new Client({ name: 'test', version: '1' })
    const cli = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
    const args = ['--conditions=toolgate-source', cli, 'stdio', '--url', gateway.url, '--key', KEYS.viewer]
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
    try {
      const told: (string | undefined)[] = []
      const onprogress = ({ message }: { readonly message?: string | undefined }) => void told.push(message)
      const calling = client.callTool({ name: 'pay__send', arguments: { cents: 1 } }, { onprogress })
      await until(() => told.length > 0)
      await decide('approve')
      assert.match(JSON.stringify(await calling), /send ran/)
      assert.match(told[0] ?? '', /^Waiting for approval of pay__send\./)
    } finally {
      await client.close()
    }
  })
})
