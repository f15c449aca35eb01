import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CallToolResultSchema,
  ElicitationCompleteNotificationSchema,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { startRecordingServer, type RecordingServer } from './support/recording-server.ts'
import { send as post } from './support/http.ts'
import { MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** The doors through which a person approves a call, each with a real client. */

const INFO = { name: 'test', version: '1' }
const OTHER_KEY = 'other-key-of-viewer'
let server: RecordingServer
let gateway: TestGateway

before(async () => {
  const inputSchema = { type: 'object', properties: { cents: { type: 'number' } } }
  server = await startRecordingServer([
    { name: 'send', inputSchema },
    { name: 'free', inputSchema },
  ])
  gateway = await startTestGateway({
    servers: [httpServer('pay', server.url)],
    callers: [...CALLERS, callerConfig(OTHER_KEY, { user: 'viewer', roles: ['viewer'] })],
    policy: [{ ask: ['pay:send'] }],
    search: { offer: 'always' },
  })
})
after(async () => {
  await gateway?.close()
  await server?.close()
})
beforeEach(() => server.forget())

async function pending(): Promise<readonly string[]> {
  return (await gateway.gate.approvals.list({ status: 'pending' })).map(({ id }) => id)
}

async function decide(decision: 'approve' | 'reject', id?: string): Promise<void> {
  if (id === undefined) await until(async () => (await pending()).length > 0)
  const ids = id === undefined ? await pending() : [id]
  for (const one of ids)
    assert.equal((await gateway.api(`/api/approvals/${one}`, { method: 'POST', body: { decision } })).status, 200)
}

function headers(key: string = KEYS.viewer) {
  return { requestInit: { headers: { authorization: `Bearer ${key}` } } }
}

type Result = NonNullable<RpcAnswer['result']>
const textOf = ({ content }: Result) => (content ?? []).map(({ text }) => text ?? '').join('\n')
const runs = () => server.calls('send').length

describe('a client of 2026-07-28 that opens URLs (SDK 2.4)', () => {
  async function connect(onUrl: (url: string) => Promise<'accept' | 'decline'>) {
    const opened: { readonly mode?: string; readonly url?: string; readonly message?: string }[] = []
    const client = new Client(INFO, {
      capabilities: { elicitation: { url: {} } },
      versionNegotiation: { mode: { pin: MODERN } },
    })
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      opened.push(params as never)
      return { action: await onUrl(String((params as { url?: string }).url)) }
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), headers()))
    const call = async (cents: number) =>
      (await client.callTool({ name: 'pay__send', arguments: { cents } })) as unknown as Result
    return { client, opened, call }
  }

  it('gets a link, waits for the person, and its one call runs once', async () => {
    const { client, opened, call } = await connect(async () => 'accept')
    const calling = call(100)
    await decide('approve')
    assert.equal(textOf(await calling), 'send ran')
    assert.equal(runs(), 1)
    assert.equal(opened.length, 1)
    const [{ mode, url = '', message } = {}] = opened
    assert.deepEqual([mode, message], ['url', 'A person must approve this call of pay__send before it runs.'])
    assert.match(url, new RegExp(`^${gateway.url}/approvals/[0-9a-f-]{36}$`))
    await client.close()
  })

  it('gets the link through call_tool too, and its one call runs once', async () => {
    const { client, opened } = await connect(async () => 'accept')
    const calling = client.callTool({ name: 'call_tool', arguments: { name: 'pay__send', arguments: { cents: 103 } } })
    await decide('approve')
    assert.equal(textOf((await calling) as unknown as Result), 'send ran')
    assert.equal(runs(), 1)
    assert.deepEqual(
      opened.map(({ message }) => message),
      ['A person must approve this call of pay__send before it runs.'],
    )
    await client.close()
  })

  it('gets the refusal when the person rejects', async () => {
    const { client, call } = await connect(async () => 'accept')
    const calling = call(101)
    await decide('reject')
    assert.match(textOf(await calling), /a person rejected this call/)
    assert.equal(runs(), 0)
    await client.close()
  })

  it('gets the text when nobody opens the link', async () => {
    const { client, opened, call } = await connect(async () => 'decline')
    assert.match(textOf(await call(102)), /Waiting for approval of pay__send/)
    assert.equal(opened.length, 1)
    await decide('reject')
    await client.close()
  })
})

describe('a client of 2025-11-25 that opens URLs (SDK 1.x)', () => {
  async function connect(elicitation: { url?: object; form?: Record<string, unknown> }) {
    const client = new ClientV1(INFO, { capabilities: { elicitation } })
    const completed: unknown[] = []
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => {
      completed.push(params.elicitationId)
    })
    await client.connect(new TransportV1(new URL(gateway.mcpUrl), headers()))
    const call = async (cents: number) =>
      (await client.request(
        { method: 'tools/call', params: { name: 'pay__send', arguments: { cents } } },
        CallToolResultSchema,
      )) as Result
    return { client, call, completed }
  }

  it('gets the error -32042 with the link, and its retry runs once', async () => {
    const { client, call, completed } = await connect({ url: {} })
    const error: unknown = await call(200).catch((caught: unknown) => caught)
    assert.ok(error instanceof UrlElicitationRequiredError, String(error))
    const [asked] = error.elicitations
    assert.equal(asked?.url, `${gateway.url}/approvals/${asked?.elicitationId}`)
    await decide('approve', asked?.elicitationId ?? '')
    await until(() => completed.length > 0)
    assert.deepEqual(completed, [asked?.elicitationId])
    assert.equal(textOf(await call(200)), 'send ran')
    assert.ok((await call(200).catch((caught: unknown) => caught)) instanceof UrlElicitationRequiredError)
    assert.equal(runs(), 1)
    await decide('reject')
    await client.close()
  })

  it('gets the same error if it names its revision only at the start of its session', async () => {
    const { authorization } = headers().requestInit.headers
    const ask = (body: object, more: object = {}) =>
      post(gateway.mcpUrl, {
        headers: { authorization, 'content-type': 'application/json', ...more },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
      })
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: { url: {} } }, clientInfo: INFO }
    const begun = await ask({ method: 'initialize', params })
    const call = { method: 'tools/call', params: { name: 'pay__send', arguments: { cents: 207 } } }
    const answer = await ask(call, { 'mcp-session-id': begun.headers['mcp-session-id'] })
    assert.equal((answer.json() as RpcAnswer).error?.code, -32_042)
    await decide('reject')
  })

  it('gets the text if it has forms only: its agent could answer those', async () => {
    for (const elicitation of [{}, { form: {} }]) {
      const { client, call } = await connect(elicitation)
      assert.match(textOf(await call(201)), /Waiting for approval of pay__send/)
      await client.close()
    }
    await decide('reject')
  })
})

describe('the requestState of a client', () => {
  const CAPABLE = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }
  const ACCEPT = { approval: { action: 'accept' } }

  async function send(cents: number, more: object = {}, options: { name?: string; key?: string } = {}) {
    const { name = 'pay__send', key = KEYS.viewer } = options
    const params = { name, arguments: { cents }, _meta: CAPABLE, ...more }
    const { status, text } = await gateway.ask('viewer', MODERN, 'tools/call', params, {
      headers: { authorization: `Bearer ${key}` },
    })
    return { status, text, answer: JSON.parse(text) as RpcAnswer & { result?: { requestState?: string } } }
  }

  async function ask(cents: number) {
    const { answer } = await send(cents)
    assert.equal((answer.result as { resultType?: string }).resultType, 'input_required')
    const { requestState } = answer.result ?? {}
    assert.ok(requestState)
    return requestState
  }

  const errorOf = async (sent: ReturnType<typeof send>) => {
    const { status, text } = await sent
    return `${status} ${text}`
  }
  const INVALID = '200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params.requestState is invalid."}}'

  it('spends the approval at the retry', async () => {
    const requestState = await ask(300)
    await decide('approve')
    const { answer } = await send(300, { requestState, inputResponses: ACCEPT })
    assert.equal(textOf(answer.result as Result), 'send ran')
    assert.equal(runs(), 1)
  })

  it('is not cached, and tells nothing of the approval', async () => {
    const { answer } = await send(301)
    assert.ok(!('ttlMs' in (answer.result ?? {})))
    const [id = ''] = await pending()
    assert.ok(!Buffer.from(answer.result?.requestState?.split('.')[2] ?? '', 'base64url').includes(id))
    await decide('reject')
  })

  it('is one error when it is forged, edited, used, of another client, tool or input; each is on record', async () => {
    const requestState = await ask(302)
    const more = { requestState, inputResponses: ACCEPT }
    const earlier = (await refusals()).length
    const attacks = [
      send(302, { ...more, requestState: 'tg1.abc.forged' }),
      send(302, { ...more, requestState: `${requestState}A` }),
      send(302, { ...more, requestState: requestState.slice(0, -2) }),
      send(302, { ...more, requestState: 7 }),
      send(303, more),
      send(302, more, { name: 'pay__free' }),
      send(302, more, { key: KEYS.operator }),
      send(302, more, { key: OTHER_KEY }),
    ]
    for (const attack of attacks) assert.equal(await errorOf(attack), INVALID)
    await decide('approve')
    assert.equal(textOf((await send(302, more)).answer.result as Result), 'send ran')
    assert.equal(await errorOf(send(302, more)), INVALID, 'a replay')
    assert.equal(runs(), 1)
    assert.equal((await refusals()).length, earlier + attacks.length + 1)
  })

  it('approves nothing where it is missing: the client gets a state again', async () => {
    const ran = runs()
    const { answer } = await send(309, { inputResponses: ACCEPT })
    assert.equal((answer.result as { resultType?: string }).resultType, 'input_required')
    await decide('reject')
    assert.equal(runs(), ran)
  })

  it('can still be used after an answer that is not an object', async () => {
    const requestState = await ask(304)
    for (const [inputResponses, field] of [
      ['yes', ''],
      [[], ''],
      [{ approval: 'accept' }, '[\\"approval\\"]'],
    ] as const)
      assert.ok((await errorOf(send(304, { requestState, inputResponses }))).includes(`inputResponses${field} must be`))
    await decide('approve')
    const { answer } = await send(304, { requestState, inputResponses: ACCEPT })
    assert.equal(textOf(answer.result as Result), 'send ran')
  })

  it('opens no link by an answer to what nobody has asked', async () => {
    for (const [cents, inputResponses] of [
      [307, { other: { action: 'accept' } }],
      [308, { __proto__: null, constructor: {} }],
    ] as const) {
      const requestState = await ask(cents)
      const { answer } = await send(cents, { requestState, inputResponses })
      assert.match(textOf(answer.result as Result), /approv/)
      assert.equal(await errorOf(send(cents, { requestState })), INVALID, 'it is used')
      await decide('reject')
    }
  })

  it('approves nothing by itself', async () => {
    const { answer } = await send(305, { requestState: await ask(305) })
    assert.match(textOf(answer.result as Result), /Waiting for approval/)
    assert.equal(runs(), 0)
    await decide('reject')
  })

  it('does not reveal a tool that is hidden by now', async () => {
    const requestState = await ask(306)
    gateway.gate.setPolicy([{ deny: ['pay:send'] }])
    const hidden = await send(306, { requestState, inputResponses: ACCEPT })
    const unknown = await send(306, { requestState, inputResponses: ACCEPT }, { name: 'pay__none' })
    gateway.gate.setPolicy([{ ask: ['pay:send'] }])
    assert.equal(hidden.text.replaceAll('pay__send', 'X'), unknown.text.replaceAll('pay__none', 'X'))
    await decide('reject')
  })

  async function refusals() {
    const { body } = await gateway.api('/api/audit?event=tool_blocked&limit=1000')
    return (body as { records: { reason: string; detail: string }[] }).records.filter(
      ({ reason, detail }) => reason === 'input_invalid' && detail.includes('params.requestState is invalid'),
    )
  }
})
