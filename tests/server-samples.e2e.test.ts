import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { hostEarlier, hostModern, type HostedServer, type Json, type Turn } from './support/mcp-host.ts'
import { MODERN, type RpcAnswer } from './support/rpc.ts'
import { everythingServer, httpServer } from './support/servers.ts'

/** Servers of both eras that sample and ask for roots, behind clients of both eras on the official SDKs. */

const INFO = { name: 'test', version: '1' }
const MAY = { elicit: true, sample: true, roots: true, log: false, open: [] }
const TOOLS = [{ name: 'weather', inputSchema: { type: 'object' as const } }]
const NAMES = ['sample', 'sample_tools', 'roots', 'both', 'insists', 'capabilities'] as const
const CAPABLE = { 'io.modelcontextprotocol/clientCapabilities': { sampling: {}, roots: {} } }

/** The error of the server's SDK, or of the gateway where the SDK leaves the check to its client. */
const NO_CAPABILITY = /do not declare the required capability|does not support|may not ask/

const says = (text: string): Json => ({ content: [{ type: 'text', text }] })
const samples = (more: Json = {}): Json => ({
  messages: [{ role: 'user', content: { type: 'text', text: 'The capital of France?' } }],
  maxTokens: 9,
  includeContext: 'thisServer',
  systemPrompt: 'Be brief.',
  ...more,
})
/** What each tool asks for, by key. */
const ASKS: Readonly<Record<string, Readonly<Record<string, { readonly method: string; readonly params: Json }>>>> = {
  sample: { capital: { method: 'sampling/createMessage', params: samples() } },
  sample_tools: { capital: { method: 'sampling/createMessage', params: samples({ tools: TOOLS }) } },
  insists: { capital: { method: 'sampling/createMessage', params: samples() } },
  roots: { folders: { method: 'roots/list', params: {} } },
  both: {
    capital: { method: 'sampling/createMessage', params: samples() },
    folders: { method: 'roots/list', params: {} },
  },
}
const calls: { readonly era: string; readonly responses: Json | undefined }[] = []

/** Answers as a server whose tools ask for something and return the answers. */
function answer(method: string, params: Json, turn: Turn): Json | Promise<Json> | undefined {
  if (method === 'tools/list') return { tools: NAMES.map((name) => ({ name, inputSchema: { type: 'object' } })) }
  return method === 'tools/call' ? call(String(params['name']), turn) : undefined
}

async function call(name: string, { era, responses, state, ask, capabilities }: Turn): Promise<Json> {
  const asks = ASKS[name]
  if (!asks) return says(JSON.stringify(capabilities))
  calls.push({ era, responses })
  if (era === 'legacy') {
    const answers: [string, Json][] = []
    for (const [key, request] of Object.entries(asks)) answers.push([key, await ask(request.method, request.params)])
    return says(JSON.stringify(Object.fromEntries(answers)))
  }
  if (name !== 'insists' && responses && Object.keys(asks).every((key) => Object.hasOwn(responses, key)))
    return says(JSON.stringify({ ...responses, state }))
  return { resultType: 'input_required', inputRequests: asks, requestState: 'own' }
}

let gateway: TestGateway
let hosts: readonly HostedServer[]

before(async () => {
  hosts = [await hostModern(answer), await hostEarlier(answer)]
  const [modern = '', earlier = ''] = hosts.map(({ url }) => url)
  gateway = await startTestGateway({
    servers: [
      httpServer('modern', modern, { may: MAY }),
      httpServer('earlier', earlier, { may: MAY, per: 'user' }),
      httpServer('quiet', modern),
      httpServer('quiet_earlier', earlier, { per: 'user' }),
      httpServer('halted', modern, { may: MAY }),
      { ...everythingServer(), name: 'everything', per: 'user', may: MAY },
    ],
    limits: ['modern:both:2/60'],
  })
})
after(async () => {
  await gateway?.close()
  for (const host of hosts ?? []) await host.close()
})

const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
const FULL = { sampling: { tools: {} }, roots: { listChanged: true } }
const SAMPLED = { role: 'assistant' as const, model: 'm', content: { type: 'text' as const, text: 'Paris' } }
const ROOTS = { roots: [{ uri: 'file:///workspace', name: 'work' }] }

interface TestClient {
  readonly asked: { readonly method: string; readonly params: unknown }[]
  textOf(name: string, input?: Record<string, unknown>): Promise<string>
  close(): Promise<void>
}

type Connect = (capabilities?: object) => Promise<TestClient>

const connectEarlier: Connect = async (capabilities = FULL) => {
  const asked: TestClient['asked'] = []
  const client = new ClientV1(INFO, { capabilities })
  if ('sampling' in capabilities)
    client.setRequestHandler(CreateMessageRequestSchema, ({ method, params }) => {
      asked.push({ method, params })
      return SAMPLED
    })
  if ('roots' in capabilities)
    client.setRequestHandler(ListRootsRequestSchema, ({ method, params }) => {
      asked.push({ method, params })
      return ROOTS
    })
  await client.connect(new TransportV1(new URL(gateway.mcpUrl), { requestInit }))
  const textOf = async (name: string, input: Record<string, unknown> = {}) =>
    JSON.stringify(await client.callTool({ name, arguments: input }).catch((error: unknown) => String(error)))
  return { asked, textOf, close: () => client.close() }
}

const connectModern: Connect = async (capabilities = FULL) => {
  const asked: TestClient['asked'] = []
  const client = new Client(INFO, { versionNegotiation: { mode: { pin: MODERN } }, capabilities })
  if ('sampling' in capabilities)
    client.setRequestHandler('sampling/createMessage', ({ method, params }) => {
      asked.push({ method, params })
      return SAMPLED
    })
  if ('roots' in capabilities)
    client.setRequestHandler('roots/list', ({ method, params }) => {
      asked.push({ method, params })
      return ROOTS
    })
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
  const textOf = async (name: string, input: Record<string, unknown> = {}) =>
    JSON.stringify(await client.callTool({ name, arguments: input }).catch((error: unknown) => String(error)))
  return { asked, textOf, close: () => client.close() }
}

async function recordsOf(tool: string) {
  const { body } = await gateway.api(`/api/audit?event=server_asked&tool=${tool}&limit=100`)
  return (body as { records: { reason: string; detail: string }[] }).records
}

for (const server of ['modern', 'earlier'])
  for (const [of, connect] of [
    ['2026-07-28', connectModern],
    ['2025-11-25', connectEarlier],
  ] as const)
    describe(`a server that is ${server}, behind a client of ${of}`, () => {
      it('samples and gets the roots, under its name', async () => {
        const { asked, textOf, close } = await connect()
        assert.match(await textOf(`${server}__sample`), /Paris/)
        assert.match(await textOf(`${server}__roots`), /workspace/)
        assert.match(await textOf(`${server}__sample_tools`), /Paris/)
        const [plain, roots, withTools] = asked as { method: string; params?: Json }[]
        assert.deepEqual([plain?.method, roots?.method], ['sampling/createMessage', 'roots/list'])
        assert.equal(plain?.params?.['systemPrompt'], `Server "${server}" asks: Be brief.`)
        assert.equal(plain?.params?.['includeContext'], undefined)
        assert.deepEqual(withTools?.params?.['tools'], TOOLS)
        const [record] = await recordsOf(`${server}:sample`)
        assert.equal(record?.reason, 'relayed')
        assert.match(record?.detail ?? '', /Be brief\.: The capital of France\? \(left out: includeContext\)$/)
        await close()
      })

      it('asks nobody whose model uses no tools for a sample with tools', async () => {
        const { asked, textOf, close } = await connect({ sampling: {} })
        assert.match(await textOf(`${server}__sample_tools`), NO_CAPABILITY)
        assert.deepEqual(asked, [])
        await close()
      })

      it('asks nobody for roots who has none, on record', async () => {
        const { asked, textOf, close } = await connect({ sampling: {} })
        assert.match(await textOf(`${server}__roots`), NO_CAPABILITY)
        const [record] = await recordsOf(`${server}:roots`)
        assert.match(record?.detail ?? '', /roots, but its client does not have it|does not support roots\/list/)
        assert.deepEqual(asked, [])
        await close()
      })
    })

describe('server-everything, on stdio, behind a client of 2026-07-28', () => {
  it('samples and gets the roots', async () => {
    const { asked, textOf, close } = await connectModern()
    assert.match(await textOf('everything__trigger-sampling-request', { prompt: 'p', maxTokens: 5 }), /Paris/)
    assert.match(await textOf('everything__get-roots-list'), /workspace/)
    const methods = asked.map(({ method }) => method)
    assert.deepEqual([...new Set(methods)].toSorted(), ['roots/list', 'sampling/createMessage'])
    await close()
  })
})

describe('a server whose entry permits nothing', () => {
  for (const [of, connect] of [
    ['2026-07-28', connectModern],
    ['2025-11-25', connectEarlier],
  ] as const)
    it(`asks no client of ${of}, and is told of no capability`, async () => {
      const { asked, textOf, close } = await connect()
      assert.match(await textOf('quiet__sample'), NO_CAPABILITY)
      assert.match(await textOf('quiet_earlier__roots'), NO_CAPABILITY)
      const [record] = await recordsOf('quiet:sample')
      assert.equal(record?.reason, 'refused')
      assert.match(record?.detail ?? '', /^quiet: it needs the capability sampling, but its entry does not permit it/)
      assert.match(await textOf('quiet__capabilities'), /"\{\}"/)
      assert.match(await textOf('quiet_earlier__capabilities'), /"\{\}"/)
      assert.deepEqual(asked, [])
      await close()
    })
})

describe('what a server may ask', () => {
  it('is shown with the servers, and with the reason of a decision', async () => {
    const { body } = await gateway.api('/api/servers')
    const { servers } = body as { servers: { name: string; may?: readonly string[] }[] }
    const mayOf = (name: string) => servers.find((row) => row.name === name)?.may
    assert.deepEqual([mayOf('modern'), mayOf('quiet')], [['elicit', 'sample', 'roots'], undefined])
    const why = async (tool: string) =>
      ((await gateway.api(`/api/why?tool=${tool}&as=admin`)).body as { may?: unknown }).may
    assert.deepEqual(
      [await why('modern:sample'), await why('quiet:sample')],
      [['elicit', 'sample', 'roots'], undefined],
    )
  })
})

describe('the capabilities that a server is told', () => {
  it('are those of its entry and of the client of the call, without announcements of changes', async () => {
    const full = await connectModern()
    assert.match(
      await full.textOf('modern__capabilities'),
      /"\{\\"sampling\\":\{\\"tools\\":\{\}\},\\"roots\\":\{\}\}"/,
    )
    const plain = await connectModern({ sampling: {} })
    assert.match(await plain.textOf('modern__capabilities'), /"\{\\"sampling\\":\{\}\}"/)
    await Promise.all([full.close(), plain.close()])
  })

  it('are those of its entry at the handshake of an earlier revision', async () => {
    const { textOf, close } = await connectModern({})
    const text = await textOf('earlier__capabilities')
    for (const capability of ['sampling', 'roots', 'form']) assert.ok(text.includes(capability), text)
    assert.ok(!text.includes('listChanged'), text)
    await close()
  })
})

/** A call of 2026-07-28, and what it was answered. */
async function send(name: string, more: Json = {}) {
  const { text, status } = await gateway.ask('admin', MODERN, 'tools/call', {
    name,
    arguments: {},
    ...more,
    _meta: CAPABLE,
  })
  const { result = {}, error } = JSON.parse(text) as RpcAnswer
  const round = result as unknown as { requestState?: string; inputRequests?: Json; content?: { text: string }[] }
  return { ...round, status, error, text: round.content?.[0]?.text }
}

for (const server of ['modern', 'earlier'])
  describe(`the answers to a server that is ${server}`, () => {
    const name = `${server}__sample`

    it('are asked for again where they are missing or unusable', async () => {
      const first = await send(name)
      const [key = ''] = Object.keys(first.inputRequests ?? {})
      const again = await send(name, { requestState: first.requestState })
      assert.deepEqual(again.inputRequests, first.inputRequests)
      const other = await send(name, { requestState: again.requestState, inputResponses: { other: SAMPLED } })
      assert.deepEqual(other.inputRequests, first.inputRequests)
      const unusable = { [key]: server === 'earlier' ? { roots: [] } : undefined }
      const last = await send(name, { requestState: other.requestState, inputResponses: unusable })
      assert.deepEqual(last.inputRequests, first.inputRequests)
      const done = await send(name, { requestState: last.requestState, inputResponses: { [key]: SAMPLED } })
      assert.match(done.text ?? '', /Paris/)
    })

    it('may come with others, which are ignored', async () => {
      const { requestState, inputRequests = {} } = await send(name)
      const inputResponses = { [Object.keys(inputRequests)[0] ?? '']: SAMPLED, unknown: { action: 'accept' } }
      const { text = '' } = await send(name, { requestState, inputResponses })
      assert.match(text, /Paris/)
      assert.doesNotMatch(text, /unknown/)
    })

    it('that are no objects are refused by name, and the state can still be used', async () => {
      const { requestState, inputRequests = {} } = await send(name)
      const [key = ''] = Object.keys(inputRequests)
      for (const [inputResponses, message] of [
        [[SAMPLED], 'params.inputResponses must be an object.'],
        [{ [key]: 12_345 }, `params.inputResponses["${key}"] must be an object.`],
      ] as const)
        assert.deepEqual((await send(name, { requestState, inputResponses })).error, { code: -32_602, message })
      assert.match((await send(name, { requestState, inputResponses: { [key]: SAMPLED } })).text ?? '', /Paris/)
    })
  })

describe('answers without a state', () => {
  it('begin a new call, whose server asks for what is missing', async () => {
    const { inputRequests } = await send('modern__sample', { inputResponses: { wrong: SAMPLED } })
    assert.deepEqual(Object.keys(inputRequests ?? {}), ['capital'])
    assert.ok((await send('earlier__sample', { inputResponses: { capital: SAMPLED } })).requestState)
    assert.ok((await send('modern__sample', { requestState: null, inputResponses: null })).requestState)
  })

  it('answer what the server then asks, and reach it no sooner', async () => {
    calls.length = 0
    const recorded = (await recordsOf('modern:sample')).length
    const { text = '' } = await send('modern__sample', { inputResponses: { capital: SAMPLED, unknown: SAMPLED } })
    assert.match(text, /Paris/)
    assert.match(text, /"state":"own"/)
    assert.deepEqual(
      calls.map(({ responses }) => Object.keys(responses ?? {})),
      [[], ['capital']],
    )
    assert.equal((await recordsOf('modern:sample')).length, recorded + 1)
  })

  it('answer once: a server that insists asks its client', async () => {
    calls.length = 0
    const { inputRequests } = await send('modern__insists', { inputResponses: { capital: SAMPLED } })
    assert.deepEqual(Object.keys(inputRequests ?? {}), ['capital'])
    assert.equal(calls.length, 2)
  })

  it('answer no server that may not ask', async () => {
    calls.length = 0
    const { error } = await send('quiet__sample', { inputResponses: { capital: SAMPLED } })
    assert.equal(error?.code, -32_021)
    assert.equal(calls.length, 1)
  })
})

describe('the rounds of a call that samples', () => {
  const answered = ({ requestState }: { requestState?: string }) => ({
    requestState,
    inputResponses: { capital: SAMPLED, folders: ROOTS },
  })

  it('take one limit', async () => {
    for (let i = 0; i < 2; i++)
      assert.match((await send('modern__both', answered(await send('modern__both')))).text ?? '', /Paris/)
    assert.match((await send('modern__both')).text ?? '', /rate limited/)
  })

  it('are refused after a halt', async () => {
    const first = await send('halted__both')
    const halt = await gateway.gate.halt({ tool: 'halted:both', reason: 'its key has leaked' })
    assert.match((await send('halted__both', answered(first))).text ?? '', /its key has leaked/)
    await gateway.gate.release({ id: halt.id })
  })
})
