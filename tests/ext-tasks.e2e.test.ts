import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import {
  type ApplicationInputRequest,
  createTaskSessionFromClient,
  type JsonRpcResponse,
  type RawClientDispatch,
} from '@modelcontextprotocol/ext-tasks/client'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type Params, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** The door of tasks with a client that people have: `@modelcontextprotocol/ext-tasks` on the SDK's client. */

const TOOL = { name: 'send', inputSchema: { type: 'object', properties: { cents: { type: 'number' } } } }
const CAPABLE = { elicitation: { url: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }
const INFO = { name: 'test', version: '1' }
let server: RecordingServer
const open: (() => Promise<unknown>)[] = []

before(async () => {
  server = await startRecordingServer([TOOL])
})
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
  server.forget()
})
after(() => server.close())

/** Returns a task session of a client, and the links that its application was asked to open. */
async function connect(ttlMs?: number) {
  const gateway: TestGateway = await startTestGateway({
    servers: [httpServer('pay', server.url)],
    policy: [{ ask: ['pay:send'] }],
    ...(ttlMs !== undefined && { approvals: { ttlMs } }),
  })
  open.push(() => gateway.close())
  const client = new Client(INFO, { versionNegotiation: { mode: { pin: MODERN } }, capabilities: CAPABLE })
  const requestInit = { headers: { authorization: `Bearer ${KEYS.viewer}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
  open.push(() => client.close())
  const links = Promise.withResolvers<string>()
  const sent: string[] = []
  const session = createTaskSessionFromClient(client, {
    endpointId: 'gateway',
    rawDispatch: toDispatch(gateway, sent),
    v2RequestFraming: { protocolVersion: MODERN, clientInfo: INFO, clientCapabilities: CAPABLE },
    async onInputRequest(asked: ApplicationInputRequest) {
      const url = asked.params?.['url']
      assert.ok(asked.kind === 'elicitation' && typeof url === 'string')
      links.resolve(url)
      return { action: 'accept' } as never
    },
  })
  open.push(() => session.close())
  const execution = await session.callTool('pay__send', { cents: 5 })
  assert.equal(execution.kind, 'task')
  return { gateway, execution, link: links.promise, sent }
}

/** The SDK's codecs know no tasks of 2026-07-28, so the host sends them itself. */
function toDispatch(gateway: TestGateway, sent: string[]): RawClientDispatch {
  return async (request): Promise<JsonRpcResponse> => {
    const { method, params } = request as unknown as { readonly method: string; readonly params: Params }
    const { result, error } = (await gateway.ask('viewer', MODERN, method, params)).json() as RpcAnswer
    sent.push(method)
    return error ? { kind: 'error', error: error as never } : { kind: 'result', result: result as never }
  }
}

async function decide(gateway: TestGateway, link: string, decision: string): Promise<void> {
  assert.equal(new URL(link).origin, gateway.url)
  const id = link.split('/').at(-1)
  assert.equal((await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision } })).status, 200)
}

const runs = () => server.calls('send').length

describe('the client of ext-tasks 0.2 on SDK 2.4', () => {
  it('gets the link, and the result when a person approves', async () => {
    const { gateway, execution, link } = await connect()
    const ending = execution.result()
    await decide(gateway, await link, 'approve')
    const outcome = await ending
    assert.ok(outcome.status === 'completed', JSON.stringify(outcome))
    assert.deepEqual(outcome.result.content, [{ type: 'text', text: 'send ran' }])
    assert.equal(runs(), 1)
  })

  it('is not what approves: its own answer runs nothing', async () => {
    const { gateway, execution, link, sent } = await connect()
    const ending = execution.result().catch(() => {})
    const id = (await link).split('/').at(-1) ?? ''
    await until(() => sent.includes('tasks/update'))
    assert.equal((await gateway.gate.approvals.get(id))?.status, 'pending')
    assert.equal(runs(), 0)
    await execution.cancel()
    await ending
  })

  it('gets an error as the result when the person rejects', async () => {
    const { gateway, execution, link } = await connect()
    const ending = execution.result()
    await decide(gateway, await link, 'reject')
    const outcome = await ending
    assert.ok(outcome.status === 'completed', JSON.stringify(outcome))
    assert.equal(outcome.result.isError, true)
    assert.match(JSON.stringify(outcome.result.content), /a person rejected this call/)
    assert.equal(runs(), 0)
  })

  it('gets a failed task when nobody decides in time', async () => {
    const { execution } = await connect(1500)
    const outcome = await execution.result()
    assert.equal(outcome.status, 'failed')
    assert.match(String(outcome.status === 'failed' && outcome.error.message), /Nobody has decided in time/)
    assert.equal(runs(), 0)
  })

  it('withdraws the request when it cancels', async () => {
    const { gateway, execution, link } = await connect()
    const ending = execution.result()
    const id = (await link).split('/').at(-1) ?? ''
    await execution.cancel()
    assert.equal((await ending).status, 'cancelled')
    await until(async () => (await gateway.gate.approvals.get(id))?.status === 'rejected')
    assert.equal(runs(), 0)
  })
})
