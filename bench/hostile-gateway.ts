import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { digits, median, printTable } from './lib.ts'
import { freePort, type ServerProcess, startServer } from './server-process.ts'

/**
 * How long hostile requests and hostile servers stall the gateway: for each kind, the longest delay of its event loop.
 */
const ROUNDS = 3
const GOAL_MS = 50
const KEY = 'bench-key-0123456789'
const CONSOLE_KEY = 'bench-console-0123456789'
const VERSIONS = { modern: '2026-07-28', earlier: '2025-11-25' } as const
const ERAS = ['modern', 'earlier'] as const
type Era = (typeof ERAS)[number]

/** One hostile thing that is done to a gateway. Resolves when the gateway has nothing left to do for it. */
interface Kind {
  readonly name: string
  /** It gets a gateway of its own. */
  readonly isAlone?: boolean
  readonly run: (gateway: ServerProcess, era: Era) => Promise<unknown>
}

interface Message {
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** Almost as much as a body may have. */
const LONG = 3_900_000
const long = 'x'.repeat(LONG)
const manyKeys = Object.fromEntries(Array.from({ length: 250_000 }, (_, i) => [`k${i}`, 1]))
const call = (input: object, name = 'up__result', meta: object = {}): Message => ({
  method: 'tools/call',
  params: { name, arguments: input, _meta: meta },
})

/** Each is made when it is sent: together they are too large to keep. */
const REQUESTS: Readonly<Record<string, () => Message>> = {
  'a small call': () => call({}),
  '250,000 keys': () => call(manyKeys),
  '250,000 keys, unknown tool': () => call(manyKeys, 'up__unknown'),
  '250,000 keys in _meta': () => call({}, 'up__result', manyKeys),
  '1.25 million empty objects': () => call({ list: Array.from({ length: 1_250_000 }, () => ({})) }),
  '1.9 million numbers': () => call({ list: Array.from({ length: 1_900_000 }, () => 1) }),
  'as many numbers as a body may have': () => call({ list: Array.from({ length: 49_000 }, () => 1) }),
  'as many keys as a body may have': () => call(Object.fromEntries(Object.entries(manyKeys).slice(0, 9_900))),
  'a key of 3.9 MB': () => call({ [long]: 1 }),
  'a text of 3.9 MB': () => call({ text: long }),
  'a text of 3.9 MB, unknown tool': () => call({ text: long }, 'up__unknown'),
  'a text of 1.9 million escapes': () => call({ text: '"'.repeat(LONG / 2) }),
  'a text of 650,000 unicode escapes': () => call({ text: '\u0001'.repeat(LONG / 6) }),
  'a method of 3.9 MB': () => ({ method: long }),
  'a tool name of 3.9 MB': () => call({}, long),
  'a cursor of 3.9 MB': () => ({ method: 'tools/list', params: { cursor: long } }),
  'a progress token of 3.9 MB': () => call({}, 'up__result', { progressToken: long }),
}

/** Texts that every door of the HTTP API must refuse, or read, quickly. Each is made when it is sent. */
const BODIES: Readonly<Record<string, () => string>> = {
  '250,000 keys': () => JSON.stringify({ tool: 'up:result', input: manyKeys }),
  '1.9 million numbers': () => `{"tool":"up:result","input":{"list":[${'1,'.repeat(LONG / 2)}1]}}`,
  'a million brackets': () => `{"tool":"up:result","input":${'['.repeat(1_000_000)}`,
  'as many keys as a body may have, escaped': () =>
    `{"tool":"up:result","input":{${Array.from({ length: 9_900 }, (_, i) => `"\\u0061${i}":1`).join()}}}`,
  'a text of 3.9 MB': () => JSON.stringify({ tool: 'up:result', input: { text: long } }),
}
const API_DOORS = ['/api/decide', '/api/call', '/api/why'] as const

const RESULTS = ['one long text', 'one long text of escapes', 'many blocks', 'many numbers']
/** Each with a text that is in the gateway's list afterwards. */
const LISTS = [
  ['one wide schema', '"up__result"'],
  ['one long description', '"up__result"'],
  ['many tools that change', '"up__tool_2999"'],
] as const
/** A gateway reads an announced list at once, and after two readings in a row waits for a second. */
const RELIST_MS = 1500

/** A server that sends more than 64 MiB in 10 s is ended. */
const UNFLOOD_MS = 3000

const KINDS: readonly Kind[] = [
  ...Object.entries(REQUESTS).map(([name, make]) => ({
    name: `request: ${name}`,
    run: (gateway: ServerProcess, era: Era) => send(gateway, era, make()),
  })),
  ...API_DOORS.flatMap((door) =>
    Object.entries(BODIES).map(([name, make]) => ({
      name: `${door}: ${name}`,
      run: (gateway: ServerProcess) => sendApi(gateway, door, make()),
    })),
  ),
  ...RESULTS.map((kind) => ({
    name: `result: ${kind}`,
    run: async (gateway: ServerProcess, era: Era) => {
      await delay(UNFLOOD_MS)
      await gateway.longestDelayMs()
      await send(gateway, era, call({ kind }))
    },
  })),
  ...LISTS.map(([kind, listed]) => ({
    name: `list: ${kind}`,
    isAlone: true,
    run: async (gateway: ServerProcess, era: Era) => {
      await send(gateway, era, call({ kind }, 'up__relist'))
      await delay(RELIST_MS)
      const list = await send(gateway, era, { method: 'tools/list' })
      if (!list.includes(listed)) throw new Error(`the list of ${kind} was not read`)
      await send(gateway, era, call({}))
    },
  })),
]

/** Sends a message and reads its answer, whatever that is: what is measured is the gateway, not what it says. */
async function send({ origin }: ServerProcess, era: Era, { method, params = {} }: Message): Promise<string> {
  const version = VERSIONS[era]
  const name = method === 'tools/call' ? String(params['name']) : undefined
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const meta = era === 'modern' ? { ...envelope, ...(params['_meta'] as object) } : params['_meta']
  const answer = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${KEY}`,
      'mcp-protocol-version': version,
      ...(era === 'modern' ? { 'mcp-method': method.slice(0, 100) } : {}),
      ...(era === 'modern' && name !== undefined ? { 'mcp-name': name.slice(0, 100) } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  return answer.text()
}

async function sendApi({ origin }: ServerProcess, door: (typeof API_DOORS)[number], body: string): Promise<string> {
  const key = door === '/api/why' ? CONSOLE_KEY : KEY
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  return (await fetch(`${origin}${door}`, { method: 'POST', headers, body })).text()
}

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

async function startGateway(): Promise<ServerProcess> {
  const port = await freePort()
  const config = join(folder, `toolgate-${port}.yaml`)
  writeFileSync(
    config,
    `
servers:
  up: { command: "${process.execPath}", args: ["${pathOf('hostile-upstream.js')}"] }
callers:
  - { key: "${KEY}", user: vera }
  - { key: "${CONSOLE_KEY}", user: otto, roles: [approver], for: console }
policy:
  - { name: all, allow: ["*:*"] }
audit: { store: sqlite, path: "${join(folder, `audit-${port}.db`)}" }
`,
  )
  return startServer(
    { args: [pathOf('../packages/cli/bin/toolgate.js'), 'serve', '--config', config, '--port', String(port)], port },
    { method: 'tools/list', params: {}, key: KEY, expect: '"up__result"' },
  )
}

/** Each round has gateways of its own, warm in both eras: nobody is hostile to one that has just begun. */
async function measureRound(kinds: readonly Kind[]): Promise<ReadonlyMap<string, number>> {
  const delays = new Map<string, number>()
  const together = kinds.filter(({ isAlone }) => isAlone !== true)
  if (together.length > 0) await measureOne(together, delays)
  for (const kind of kinds) if (kind.isAlone === true) await measureOne([kind], delays)
  return delays
}

async function measureOne(kinds: readonly Kind[], delays: Map<string, number>): Promise<void> {
  const gateway = await startGateway()
  try {
    for (const era of ERAS) for (let i = 0; i < 50; i++) await send(gateway, era, call({ kind: 'small' }))
    // The API is loaded at the first request for it.
    for (const door of API_DOORS) await sendApi(gateway, door, '{}')
    for (const { name, run } of kinds) {
      for (const era of ERAS) {
        await gateway.longestDelayMs()
        await run(gateway, era)
        await delay(20)
        delays.set(`${name} ${era}`, await gateway.longestDelayMs())
      }
    }
  } finally {
    await gateway.stop()
  }
}

/** Prints the stalls of a gateway for each kind, or for those whose names hold one of the texts. */
export async function printGatewayStalls(texts: readonly string[] = []): Promise<void> {
  try {
    const kinds = KINDS.filter(({ name }) => texts.length === 0 || texts.some((text) => name.includes(text)))
    const rounds: ReadonlyMap<string, number>[] = []
    for (let i = 0; i < ROUNDS; i++) rounds.push(await measureRound(kinds))
    printTable(
      `Hostile clients and servers: the longest event-loop delay of the gateway, in ms (medians of ${ROUNDS} rounds), at most ${GOAL_MS}`,
      ['what', ...ERAS.flatMap((era) => [era, 'low - high', ''])],
      kinds.map(({ name }) => [name, ...ERAS.flatMap((era) => cellsOf(rounds, `${name} ${era}`))]),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function cellsOf(rounds: readonly ReadonlyMap<string, number>[], key: string): readonly string[] {
  const delays = rounds.map((measured) => measured.get(key) ?? Number.NaN)
  const middle = median(delays)
  const range = `${digits(Math.min(...delays))} - ${digits(Math.max(...delays))}`
  return [digits(middle), range, middle > GOAL_MS ? 'over' : '']
}
