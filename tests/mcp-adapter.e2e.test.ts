import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { fromMcpClient, guard, type McpRequest } from '@toolgate/adapters/mcp'
import { type Caller, createGate, type Gate, type Policy } from '@toolgate/core'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { CALLERS, KEYS, type Who } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, ERAS, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/**
 * The same gate behind the gateway and behind the adapter for MCP servers: the same lists and the same answers, in every
 * era. The gateway has its own code for the wire, and is the oracle here.
 */

const POLICY: readonly Policy[] = [
  {
    name: 'base',
    deny: [
      { match: 'rec:hidden', unless: "'admin' in caller.roles" },
      { match: 'rec:told', unless: "'admin' in caller.roles", message: 'Only admins may do that.' },
      { match: 'rec:stateless', when: 'has(caller.session)' },
      { match: 'modern:echo', input: "input.message == 'secret'", message: 'Not with that message.' },
    ],
    ask: ['rec:asked'],
  },
]
const LIMITS = ['rec:limited:1/600']

/** Opened by an event, since the gateway has its own tool for requests. */
const LATER = { tools: ['rec:locked', 'rec:both', 'rec:stateless'], unlock: { event: 'later' } }
const FREE = { tools: ['rec:both', 'rec:plain'] }

const TOOLS = [
  { name: 'plain', description: 'Runs.', annotations: { readOnlyHint: true } },
  { name: 'hidden' },
  { name: 'told' },
  { name: 'asked' },
  { name: 'limited' },
  { name: 'locked' },
  { name: 'both' },
  { name: 'stateless' },
  {
    name: 'image',
    run: () => ({ content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }], _meta: { 'example.com/a': 1 } }),
  },
  { name: 'structured', run: () => ({ content: [], structuredContent: { a: { b: [1, null] } } }) },
]

let modern: ModernServer
let recording: RecordingServer
let gateway: TestGateway
/** On the gateway's own gate. */
let same: Served
/** On another gate with the same tools, through the SDK's clients. */
let alike: Served
const closing: (() => unknown)[] = []

interface Served {
  readonly url: string
}

before(async () => {
  modern = await startModernServer()
  recording = await startRecordingServer(TOOLS)
  gateway = await startTestGateway({
    servers: [httpServer('modern', modern.url), httpServer('rec', recording.url)],
    policy: POLICY,
    limits: LIMITS,
    groups: [
      { name: 'later', ...LATER, visibility: 'always', dependsOn: [], availableWhen: [] },
      { name: 'free', ...FREE, visibility: 'always', dependsOn: [], availableWhen: [] },
    ],
    search: { offer: 'never' },
  })
  same = await serve(gateway.gate)
  const sources = await Promise.all([connect('modern', modern.url, 'auto'), connect('rec', recording.url, 'legacy')])
  const gate = createGate({
    sources,
    policy: POLICY,
    limits: LIMITS,
    groups: { later: LATER, free: FREE },
  })
  closing.push(() => gate.close())
  alike = await serve(gate)
})

after(async () => {
  for (const close of closing.toReversed()) await close()
  await gateway?.close()
  await Promise.all([modern?.close(), recording?.close()])
})

async function connect(namespace: string, url: string, mode: 'auto' | 'legacy') {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  closing.push(() => client.close())
  return fromMcpClient(client, { namespace, trustHints: true })
}

async function serve(gate: Gate): Promise<Served> {
  const caller = ({ headers }: McpRequest): Caller => {
    const who = Object.entries(KEYS).find(([, key]) => headers?.get('authorization') === `Bearer ${key}`)?.[0]
    const known = CALLERS.find((one) => one.caller.user === who)
    if (!known) throw new Error('an unknown key')
    return known.caller
  }
  const handler = createMcpHandler(
    guard(gate, { server: () => new Server({ name: 'toolgate', version: '1' }), caller, listTtlMs: 1000 }),
  )
  const handle = toNodeHandler(handler)
  const http: HttpServer = createServer((request: IncomingMessage, response) => void handle(request as never, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    await handler.close()
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
  })
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` }
}

async function ask(url: string, who: Who, era: Era, method: string, params: Params): Promise<readonly RpcAnswer[]> {
  const message = toMessage(era, method, params)
  const answer = await send(url, {
    headers: { ...message.headers, authorization: `Bearer ${KEYS[who]}` },
    body: JSON.stringify(message.body),
  })
  const isStream = (answer.headers['content-type'] ?? '').startsWith('text/event-stream')
  return (isStream ? answer.events() : [answer.json()]).map((one) => masked(one as RpcAnswer))
}

/** Removes each server's name, how long its lists may be cached, and who decides, which only a gateway knows. */
function masked({ result, ...message }: RpcAnswer): RpcAnswer {
  if (!result) return message
  const { ttlMs: _, _meta: meta = {}, ...kept } = readAgain(result)
  const { 'io.modelcontextprotocol/serverInfo': __, 'dev.toolgate/approval': approval, ...rest } = meta
  return {
    ...message,
    result: {
      ...kept,
      _meta: { ...rest, ...(approval !== undefined && { 'dev.toolgate/approval': Object.keys(approval as object) }) },
    },
  }
}

function readAgain(result: NonNullable<RpcAnswer['result']>): NonNullable<RpcAnswer['result']> {
  const text = JSON.stringify(result).replaceAll(
    / owner or somebody with the role approver can decide at \S+?\.(?=")/g,
    '',
  )
  return JSON.parse(text) as NonNullable<RpcAnswer['result']>
}

const CALLS: readonly (readonly [shows: string, params: Params])[] = [
  ['a tool that runs', { name: 'rec__plain', arguments: { a: 1 } }],
  ['no arguments', { name: 'rec__plain' }],
  ['a hidden tool', { name: 'rec__hidden', arguments: {} }],
  ['a hidden tool by its id', { name: 'rec:hidden', arguments: {} }],
  ['no such tool', { name: 'rec__hiddem', arguments: {} }],
  ['the name of a prototype', { name: '__proto__', arguments: {} }],
  ['another', { name: 'constructor', arguments: {} }],
  ['a denial with a message', { name: 'rec__told', arguments: {} }],
  ['a denial of the input', { name: 'modern__echo', arguments: { message: 'secret' } }],
  ['an input that does not fit', { name: 'modern__add', arguments: { a: 'x', b: 1 } }],
  ['an approval', { name: 'rec__asked', arguments: { n: 1 } }],
  ['what is locked', { name: 'rec__locked', arguments: {} }],
  ['an image', { name: 'rec__image', arguments: {} }],
  ['structured content', { name: 'rec__structured', arguments: {} }],
  ['structured content with a schema', { name: 'modern__add', arguments: { a: 2, b: 3 } }],
  ['a result of another revision', { name: 'modern__echo', arguments: { message: 'größe 🙂' } }],
  ['an error of the tool', { name: 'modern__fail', arguments: {} }],
  ['a name with dots', { name: 'modern__dotted_name-with_all', arguments: {} }],
  ['arguments that are none', { name: 'rec__plain', arguments: [1] }],
]

for (const [name, served] of [
  ['over the same gate', () => same],
  ['over a gate of the same tools', () => alike],
] as const) {
  describe(`the adapter ${name} and the gateway`, () => {
    for (const era of ERAS)
      it(`list the same for each caller, ${era}`, async () => {
        for (const who of ['viewer', 'operator', 'admin'] as const) {
          const [ours, theirs] = await Promise.all(
            [served().url, gateway.mcpUrl].map((url) => ask(url, who, era, 'tools/list', {})),
          )
          assert.deepEqual(ours, theirs)
          const names = (ours?.[0]?.result?.tools ?? []).map((tool) => tool.name)
          assert.equal(names.includes('rec__hidden'), who === 'admin')
          assert.ok(names.includes('rec__plain') && !names.includes('rec__locked'), names.join())
        }
      })

    it('leave tools of locked groups out of the list of a client without a session, and run them all the same', async () => {
      for (const url of [served().url, gateway.mcpUrl]) {
        const [listed] = await ask(url, 'viewer', '2026-07-28', 'tools/list', {})
        const names = listed?.result?.tools?.map((tool) => tool.name) ?? []
        for (const locked of ['rec__locked', 'rec__both', 'rec__stateless']) {
          assert.ok(!names.includes(locked), `${locked} at ${url}`)
          const [answer] = await ask(url, 'viewer', '2026-07-28', 'tools/call', { name: locked, arguments: {} })
          assert.notEqual(answer?.result?.isError, true, `${locked} at ${url}`)
        }
      }
    })

    for (const era of ['2025-11-25', '2026-07-28'] as const)
      for (const [shows, params] of CALLS)
        it(`answer alike: ${shows}, ${era}`, async () => {
          for (const who of ['viewer', 'admin'] as const) {
            const [ours, theirs] = await Promise.all(
              [served().url, gateway.mcpUrl].map((url) => ask(url, who, era, 'tools/call', params)),
            )
            assert.deepEqual(ours, theirs)
          }
        })

    it('answer alike at a limit', async () => {
      const call = (url: string) => ask(url, 'operator', '2026-07-28', 'tools/call', { name: 'rec__limited' })
      // Theirs is one limit where the gate is one.
      await call(served().url)
      await call(gateway.mcpUrl)
      const [ours] = await call(served().url)
      const [theirs] = await call(gateway.mcpUrl)
      const words = ({ result }: RpcAnswer) => result?.content?.[0]?.text?.replace(/\d+ s/, 'N s')
      assert.match(words(ours as RpcAnswer) ?? '', /rate limited \(1\/600\)/)
      assert.equal(words(ours as RpcAnswer), words(theirs as RpcAnswer))
      assert.deepEqual(Object.keys(ours?.result?._meta ?? {}), Object.keys(theirs?.result?._meta ?? {}))
    })

    it('pass on the same progress', async () => {
      const params = { name: 'modern__slow', arguments: { steps: 3, stepMs: 2 }, _meta: { progressToken: 'p' } }
      const [ours, theirs] = await Promise.all(
        [served().url, gateway.mcpUrl].map((url) => ask(url, 'admin', '2026-07-28', 'tools/call', params)),
      )
      assert.equal(ours?.length, 4)
      assert.deepEqual(ours, theirs)
    })
  })
}

describe('the adapter over clients and the gateway', () => {
  it('pass a JSON-RPC error of a server on as a JSON-RPC error', async () => {
    for (const era of ['2025-11-25', '2026-07-28'] as const) {
      const [ours, theirs] = await Promise.all(
        [alike.url, gateway.mcpUrl].map((url) => ask(url, 'admin', era, 'tools/call', { name: 'modern__rpc_error' })),
      )
      assert.equal(ours?.[0]?.error?.code, -32_050)
      assert.deepEqual(ours, theirs)
    }
  })

  it('let no call of a hidden tool reach the server', async () => {
    recording.forget()
    for (const url of [same.url, alike.url, gateway.mcpUrl])
      await ask(url, 'viewer', '2026-07-28', 'tools/call', { name: 'rec__hidden', arguments: {} })
    assert.deepEqual(recording.calls('hidden'), [])
  })
})
