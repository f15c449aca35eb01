import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

/** The rounds of one call between a client of 2026-07-28 and servers of both eras. */

const MAY = { elicit: true, sample: false, roots: false, log: false, open: [] }
const OTHER_KEY = 'other-key-of-admin'
const CAPABLE = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
const folder = tempFolder()
const file = join(folder.path, 'asking.log')
let gateway: TestGateway
let modern: ModernServer

async function start(): Promise<TestGateway> {
  const args = ['--conditions=toolgate-source', join(import.meta.dirname, 'support/asking-server.ts'), file]
  return startTestGateway({
    servers: [
      nodeServer('old', args, { may: MAY, per: 'user', callTimeoutMs: 5000 }),
      httpServer('modern', modern.url, { may: MAY }),
    ],
    callers: [...CALLERS, callerConfig(OTHER_KEY, { user: 'admin', roles: ['admin'] })],
    limits: ['old:greet:20/60', 'modern:ask_back:1/60'],
    apps: [{ name: 'desk', import: [], tools: ['old:greet'], policy: [] }],
    search: { offer: 'always' },
  })
}

before(async () => {
  modern = await startModernServer()
  gateway = await start()
})
after(async () => {
  await gateway?.close()
  await modern?.close()
  folder.remove()
})

const lines = () => readFileSync(file, 'utf8').trim().split('\n')

interface Round {
  readonly requestState?: string
  readonly inputRequests?: Readonly<Record<string, { readonly params: { readonly message: string } }>>
  readonly resultType?: string
  readonly content?: readonly { readonly text?: string }[]
}

async function send(times: number, more: object = {}, options: { name?: string; key?: string } = {}) {
  const { name = 'old__greet', key = KEYS.admin } = options
  const params = { name, arguments: { times }, ...more, _meta: CAPABLE }
  const { text } = await gateway.ask('admin', MODERN, 'tools/call', params, {
    headers: { authorization: `Bearer ${key}` },
  })
  const answer = JSON.parse(text) as RpcAnswer
  return { text, answer, round: (answer.result ?? {}) as unknown as Round }
}

/** Answers what a round asks. */
function answered({ requestState, inputRequests = {} }: Round, name = 'Vera') {
  const answer = { action: 'accept', content: { name } }
  return { requestState, inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer])) }
}

async function records(filter: string) {
  const { body } = await gateway.api(`/api/audit?limit=1000&${filter}`)
  return (body as { records: { event: string; tool_call_id: string; continues?: string; detail?: string }[] }).records
}

const INVALID = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params.requestState is invalid."}}'

describe('a server of an earlier revision that asks a client of 2026-07-28', () => {
  it('is answered by the SDK 2.4 client, with progress, in one call that runs once', async () => {
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: MODERN } }, capabilities: { elicitation: { form: {} } } },
    )
    const messages: string[] = []
    client.setRequestHandler('elicitation/create', ({ params }) => {
      messages.push(params.message)
      return { action: 'accept' as const, content: { name: `N${messages.length}` } }
    })
    const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
    const progress: number[] = []
    const result = await client.callTool(
      { name: 'old__greet', arguments: { times: 3 } },
      { onprogress: (sent) => void progress.push(sent.progress) },
    )
    assert.deepEqual(result.content, [{ type: 'text', text: 'Hello N1 and N2 and N3.' }])
    assert.deepEqual(
      messages,
      [1, 2, 3].map((i) => `Server "old" asks: Name ${i}?`),
    )
    // The SDK calls the listener of each round.
    assert.deepEqual([...new Set(progress)], [1, 2, 3])
    assert.deepEqual(
      lines().filter((line) => line.endsWith(' 3')),
      ['start 3', 'end 3'],
    )
    await client.close()
    const written = (await records('tool=old:greet')).toReversed()
    const first = written[0]?.tool_call_id
    assert.deepEqual(
      written.filter(({ event }) => event !== 'server_asked').map(({ event, continues }) => [event, continues]),
      [
        ['tool_call', undefined],
        ['tool_input_required', undefined],
        ...[1, 2].flatMap(() => [
          ['tool_call', first],
          ['tool_input_required', first],
        ]),
        ['tool_call', first],
        ['tool_result', first],
      ],
    )
  })

  it('is answered through call_tool too, and its call runs once', async () => {
    const through = (more: object = {}) =>
      gateway.ask('admin', MODERN, 'tools/call', {
        name: 'call_tool',
        arguments: { name: 'old__greet', arguments: { times: 2 } },
        ...more,
        _meta: CAPABLE,
      })
    const roundOf = ({ text }: { text: string }) => (JSON.parse(text) as RpcAnswer).result as unknown as Round
    const ran = lines().filter((line) => line.endsWith(' 2')).length
    const first = roundOf(await through())
    assert.equal(first.resultType, 'input_required')
    const second = roundOf(await through(answered(first)))
    const last = roundOf(await through(answered(second)))
    assert.equal(last.content?.[0]?.text, 'Hello Vera and Vera.')
    assert.equal(lines().filter((line) => line.endsWith(' 2')).length - ran, 2)
    assert.equal((await through(answered(second))).text, INVALID)
  })

  it('sends its progress to the request of the round, once', async () => {
    const { round } = await send(1)
    const params = { name: 'old__greet', arguments: { times: 1 }, ...answered(round) }
    const answer = await gateway.ask('admin', MODERN, 'tools/call', {
      ...params,
      _meta: { ...CAPABLE, progressToken: 9 },
    })
    const sent = answer.events() as { method?: string; params?: { progressToken?: unknown } }[]
    assert.deepEqual(
      sent.flatMap(({ method, params: progress }) => (method ? [[method, progress?.progressToken]] : [])),
      [['notifications/progress', 9]],
    )
  })

  it('gets nothing by a state that is forged, of another client, tool or input, or that was used', async () => {
    const earlier = lines().length
    const { round } = await send(1)
    assert.equal(round.resultType, 'input_required')
    const more = answered(round)
    const state = more.requestState ?? ''
    for (const attack of [
      send(2, more),
      send(1, more, { key: KEYS.operator }),
      send(1, more, { key: OTHER_KEY }),
      send(1, more, { name: 'modern__ask_back' }),
      send(1, { ...more, requestState: `${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}` }),
    ])
      assert.equal((await attack).text, INVALID)
    assert.equal((await send(1, more)).round.content?.[0]?.text, 'Hello Vera.')
    assert.equal((await send(1, more)).text, INVALID)
    assert.deepEqual(lines().slice(earlier), ['start 1', 'end 1'])
  })

  it('gets nothing by a state of another endpoint of the same client', async () => {
    const { round } = await send(1)
    const { headers, body } = toMessage(MODERN, 'tools/call', {
      name: 'old__greet',
      arguments: { times: 1 },
      ...answered(round),
      _meta: CAPABLE,
    })
    const init = { method: 'POST', headers: { ...headers, authorization: `Bearer ${KEYS.admin}` } }
    const elsewhere = await fetch(`${gateway.mcpUrl}/desk`, { ...init, body: JSON.stringify(body) })
    assert.equal(await elsewhere.text(), INVALID)
    assert.match((await send(1, answered(round))).text, /Hello Vera/)
  })

  it('is not answered by a retry without its state, which is a new call', async () => {
    const { round } = await send(1)
    const earlier = lines().length
    const other = await send(1, { inputResponses: answered(round).inputResponses })
    assert.equal(other.round.resultType, 'input_required')
    assert.deepEqual(lines().slice(earlier), ['start 1'])
    for (const one of [round, other.round])
      assert.equal((await send(1, answered(one))).round.content?.[0]?.text, 'Hello Vera.')
  })

  it('asks again for what was not answered', async () => {
    const { round } = await send(1)
    const again = await send(1, { requestState: round.requestState })
    assert.deepEqual(Object.keys(again.round.inputRequests ?? {}), Object.keys(round.inputRequests ?? {}))
    assert.equal((await send(1, answered(again.round))).round.content?.[0]?.text, 'Hello Vera.')
  })

  it('is cancelled by a halt while it waits, and the retry is refused', async () => {
    const { round } = await send(4)
    const halt = await gateway.gate.halt({ tool: 'old:greet', reason: 'its key has leaked' })
    await until(() => lines().includes('cancelled 4'))
    assert.match((await send(4, answered(round))).round.content?.[0]?.text ?? '', /its key has leaked/)
    await gateway.gate.release({ id: halt.id })
    assert.equal((await send(4, answered(round))).text, INVALID, 'nothing waits any longer')
  })

  it('is cancelled by a policy that denies it', async () => {
    await send(5)
    gateway.gate.setPolicy([{ deny: ['old:greet'] }])
    await until(() => lines().includes('cancelled 5'))
    gateway.gate.setPolicy([{ allow: ['*'] }])
  })

  it('waits for a bounded number of answers of one user', async () => {
    const rounds = await Promise.all(Array.from({ length: 10 }, () => send(6)))
    const texts = [...rounds, ...(await Promise.all(Array.from({ length: 10 }, () => send(6))))].map(({ text }) => text)
    assert.ok(texts.some((text) => /Too many calls wait|rate limited/.test(text)))
  })
})

describe('a server of 2026-07-28 that asks a client of the same revision', () => {
  it('has its own state sealed, and its rounds take one limit', async () => {
    const { round } = await send(1, {}, { name: 'modern__ask_back' })
    assert.equal(round.resultType, 'input_required')
    assert.match(round.requestState ?? '', /^tg1\./)
    const more = answered(round)
    assert.equal((await send(1, more, { name: 'modern__ask_back', key: OTHER_KEY })).text, INVALID)
    const done = await send(1, more, { name: 'modern__ask_back' })
    assert.match(done.round.content?.[0]?.text ?? '', /Hello Vera/)
    assert.match((await send(1, {}, { name: 'modern__ask_back' })).text, /rate limited/)
  })
})

describe('a gateway that stops', () => {
  it('cancels the calls that wait', async () => {
    const own = await start()
    const shared = gateway
    gateway = own
    const { round } = await send(7)
    assert.equal(round.resultType, 'input_required')
    gateway = shared
    const cancelled = lines().filter((line) => line === 'cancelled 7').length
    await own.close()
    assert.equal(cancelled, 0, 'it has waited until then')
    await until(() => lines().includes('cancelled 7'))
  })
})
