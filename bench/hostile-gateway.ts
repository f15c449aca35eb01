import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { entryOf } from './audit-entry.ts'
import { digits, median, printTable } from './lib.ts'
import { freePort, type ServerProcess, startServer, type Turn } from './server-process.ts'

/**
 * How long hostile requests and hostile servers stall the gateway: for each kind, the longest delay of its event loop.
 */
const ROUNDS = 3
const GOAL_MS = 50
const KEY = 'bench-key-0123456789'
const CONSOLE_KEY = 'bench-console-0123456789'
const TENANT_KEY = 'bench-tenant-0123456789'
const VERSIONS = { modern: '2026-07-28', earlier: '2025-11-25' } as const
const ERAS = ['modern', 'earlier'] as const
type Era = (typeof ERAS)[number]

/** One hostile thing that is done to a gateway. Resolves when the gateway has nothing left to do for it. */
interface Kind {
  readonly name: string
  /** It is the same in both eras. */
  readonly isOnce?: boolean
  /** It gets a gateway of its own. */
  readonly isAlone?: boolean
  readonly run: (gateway: ServerProcess, era: Era) => Promise<unknown>
}

interface Message {
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** A JSON text that is sent as it stands. */
class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Almost as much as a body may have. */
const LONG = 3_900_000
const long = 'x'.repeat(LONG)
const manyKeys = Object.fromEntries(Array.from({ length: 250_000 }, (_, i) => [`k${i}`, 1]))
const numbered = (count: number, prefix: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, i]))
const nested = (levels: number): unknown => Array.from({ length: levels }).reduce<unknown>((inner) => [inner], 0)
const ITEMS = Array.from({ length: 24_000 }, (_, i) => `item-${i}`)
const MEMBERS = { files: ITEMS, reviewed: ITEMS }
const ESCAPED_KEYS = `{${Array.from({ length: 9_900 }, (_, i) => `"\\u0061${i}":1`).join()}}`
/** Paths with all the readings that a path may have. */
const CODED = Array.from({ length: 200 }, () => `/${'%C3%A9%2541/'.repeat(340)}`)
const LABELS = `https://${'a.'.repeat(8000)}example/`
/** How many records of another tenant the audit has. */
const RECORDS = 120_000
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
  'as many keys, escaped': () => call(new Raw(ESCAPED_KEYS)),
  'as many integers beyond 2^53': () => call(new Raw(`{"list":[${'9007199254740993,'.repeat(49_000)}1]}`)),
  'an integer of 3.9 MB': () => call(new Raw(`{"n":${'1'.repeat(LONG)}}`)),
  'as many levels as a body may have': () => call({ list: Array.from({ length: 800 }, () => nested(50)) }),
  'a condition with in, in a macro': () => call(MEMBERS, 'up__members'),
  'a condition with duration': () => call({ text: '1'.repeat(4000) }, 'up__duration'),
  'a condition with within of a coded path': () => call({ list: CODED }, 'up__within'),
  'an addressee of 8,000 labels': () => call({ to: LABELS }, 'up__send'),
  'addressees that are 900 keys': () => call({ to: numbered(900, 'p@e.org') }, 'up__send'),
  'a cost with in, in a macro': () => call(MEMBERS, 'up__spend'),
  'an approval of a text of 3.9 MB': () => call({ text: long }, 'up__ask'),
  'an approval of as many keys': () => call(numbered(9_900, 'password'), 'up__ask'),
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

/** Inputs that every door of the HTTP API must refuse, or read, quickly. Each is made when it is sent. */
const INPUTS: Readonly<Record<string, () => string>> = {
  '250,000 keys': () => JSON.stringify(manyKeys),
  '1.9 million numbers': () => `{"list":[${'1,'.repeat(LONG / 2)}1]}`,
  'a million brackets': () => '['.repeat(1_000_000),
  'as many keys, escaped': () => ESCAPED_KEYS,
  'as many numbers': () => `{"list":[${'1,'.repeat(49_000)}1]}`,
  'as many integers beyond 2^53': () => `{"list":[${'9007199254740993,'.repeat(49_000)}1]}`,
  'as many levels': () => JSON.stringify({ list: Array.from({ length: 800 }, () => nested(50)) }),
  'a text of 3.9 MB': () => JSON.stringify({ text: long }),
  'a text of 150,000 escapes': () => JSON.stringify({ text: '\u0001'.repeat(150_000) }),
}
/** Inputs that the rules and limits of a tool read. */
const TO_TOOLS: Readonly<Record<string, readonly [tool: string, input: () => unknown]>> = {
  'a condition with in, in a macro': ['up:members', () => MEMBERS],
  'a condition with duration': ['up:duration', () => ({ text: '1'.repeat(4000) })],
  'a condition with within of a coded path': ['up:within', () => ({ list: CODED })],
  'an addressee of 8,000 labels': ['up:send', () => ({ to: LABELS })],
  'addressees that are 900 keys': ['up:send', () => ({ to: numbered(900, 'p@e.org') })],
  'a cost with in, in a macro': ['up:spend', () => MEMBERS],
  'an approval of as many keys': ['up:ask', () => numbered(9_900, 'password')],
}
/** Doors that take a tool and its input. */
const CALL_DOORS = ['/api/decide', '/api/call', '/api/why', '/api/tool/call'] as const
/** Doors with other fields, which read the body before they refuse it. */
const OTHER_DOORS = [
  '/api/what-if',
  '/api/compare',
  '/api/test',
  '/api/login',
  '/api/halts',
  '/api/keys',
  '/api/reload',
  '/api/pins/accept',
] as const
const OF_AGENTS: ReadonlySet<string> = new Set(['/api/decide', '/api/call'])
/** By a person of a tenant, where others have left {@link RECORDS}. */
const PAGES = [
  '/api/audit?limit=100',
  '/api/audit?limit=1000&user=nobody',
  '/api/calls?limit=100',
  '/api/audit/counts',
  '/api/people',
  '/api/overview',
  '/api/matrix',
  '/api/tools?as=otto',
] as const

const RESULTS = [
  'one long text',
  'one long text of escapes',
  'many blocks',
  'many numbers',
  'as many values as an answer may have',
  'as many keys as an answer may have',
  'as many keys, with a backslash',
]
/** Each with a text that is on the first page of the gateway's list afterwards. */
const LISTS = [
  ['one wide schema', '"up__result"'],
  ['one long description', '"up__result"'],
  ['many tools that change', '"up__tool_0"'],
] as const
/** A gateway reads an announced list at once, and after two readings in a row waits for a second. */
const RELIST_MS = 1500
/** On a busy machine it takes longer. */
const MAX_TRIES = 6

/** A server that sends more than 64 MiB in 10 s is ended. */
const UNFLOOD_MS = 3000

const KINDS: readonly Kind[] = [
  ...Object.entries(REQUESTS).map(([name, make]) => ({
    name: `request: ${name}`,
    run: (gateway: ServerProcess, era: Era) => send(gateway, era, make()),
  })),
  ...CALL_DOORS.flatMap((door) => [
    ...Object.entries(INPUTS).map(([name, make]) => atApi(door, name, () => bodyOf(door, 'up:result', make()))),
    ...Object.entries(TO_TOOLS).map(([name, [tool, make]]) =>
      atApi(door, name, () => bodyOf(door, tool, JSON.stringify(make()))),
    ),
  ]),
  ...OTHER_DOORS.flatMap((door) =>
    Object.entries(INPUTS).map(([name, make]) => atApi(door, name, () => `{"unknown":${make()}}`)),
  ),
  ...PAGES.map((page): Kind => ({ name: page, isOnce: true, run: (gateway) => readApi(gateway, page) })),
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
      for (let tries = 0; ; tries++) {
        await delay(RELIST_MS)
        const list = await send(gateway, era, { method: 'tools/list' })
        if (list.includes(listed)) break
        if (tries === MAX_TRIES) throw new Error(`the list of ${kind} was not read`)
      }
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
    body: textOf({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  return answer.text()
}

function textOf(message: {
  readonly [field: string]: unknown
  readonly params: Readonly<Record<string, unknown>>
}): string {
  const input = message.params['arguments']
  if (!(input instanceof Raw)) return JSON.stringify(message)
  const marked = { ...message, params: { ...message.params, arguments: '<input>' } }
  return JSON.stringify(marked).replace('"<input>"', () => input.text)
}

function atApi(door: string, name: string, make: () => string): Kind {
  return { name: `${door}: ${name}`, isOnce: true, run: (gateway) => sendApi(gateway, door, make()) }
}

function bodyOf(door: (typeof CALL_DOORS)[number], tool: string, input: string): string {
  return `{"tool":"${tool}",${OF_AGENTS.has(door) ? '' : '"as":"otto",'}"input":${input}}`
}

async function sendApi({ origin }: ServerProcess, door: string, body: string): Promise<string> {
  const key = OF_AGENTS.has(door) ? KEY : CONSOLE_KEY
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  return (await fetch(`${origin}${door}`, { method: 'POST', headers, body })).text()
}

async function readApi({ origin }: ServerProcess, page: string): Promise<string> {
  return (await fetch(`${origin}${page}`, { headers: { authorization: `Bearer ${TENANT_KEY}` } })).text()
}

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const filled = join(folder, 'filled.db')
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Writes {@link RECORDS} of another tenant than that of the person who asks for them. */
async function fillAudit(path: string): Promise<void> {
  const audit = openSqliteAudit({ path, checkpoints: false })
  for (let i = 0; i < RECORDS; i++) {
    await audit.write({ ...entryOf(i), tenant: 'other' })
    if (i % 1000 === 0) await audit.flush()
  }
  await audit.close()
}

async function startGateway(): Promise<ServerProcess> {
  const port = await freePort()
  const audit = join(folder, `audit-${port}.db`)
  if (!existsSync(filled)) await fillAudit(filled)
  copyFileSync(filled, audit)
  const config = join(folder, `toolgate-${port}.yaml`)
  writeFileSync(
    config,
    `
servers:
  up: { command: "${process.execPath}", per: shared, args: ["${pathOf('hostile-upstream.js')}"], tools: { send: { addressees: [to] } } }
callers:
  - { key: "${KEY}", user: vera }
  - { key: "bench-agent-0123456789", user: otto }
  - { key: "${CONSOLE_KEY}", user: otto, roles: [approver, operator], for: console }
  - { key: "${TENANT_KEY}", user: tom, tenant: acme, roles: [approver, operator], for: console }
policy:
  - name: all
    allow: ["*:*"]
    deny:
      - { match: "up:members", input: "!input.files.all(f, f in input.reviewed)" }
      - { match: "up:duration", input: "duration(input.text) > duration('1h')" }
      - { match: "up:within", input: "!input.list.all(p, within(p, '/etc') || true)" }
      - { match: "up:send", input: "!(origin(addressees) in ['user', 'trusted'])" }
    ask: ["up:ask"]
limits:
  - { match: "up:spend", max: 1000000, windowMs: 60000, per: [user], cost: "input.files.filter(f, f in input.reviewed).size()" }
audit: { store: sqlite, path: "${audit}" }
`,
  )
  return startServer(
    {
      args: [
        '--conditions=toolgate-source',
        pathOf('../packages/cli/bin/toolgate.js'),
        'serve',
        '--config',
        config,
        '--port',
        String(port),
      ],
      port,
    },
    { method: 'tools/list', params: {}, key: KEY, expect: '"up__result"' },
  )
}

/** Each round has gateways of its own, warm in both eras: nobody is hostile to one that has just begun. */
async function measureRound(kinds: readonly Kind[]): Promise<ReadonlyMap<string, Turn>> {
  const delays = new Map<string, Turn>()
  const together = kinds.filter(({ isAlone }) => isAlone !== true)
  if (together.length > 0) await measureOne(together, delays)
  for (const kind of kinds) if (kind.isAlone === true) await measureOne([kind], delays)
  return delays
}

async function measureOne(kinds: readonly Kind[], delays: Map<string, Turn>): Promise<void> {
  const gateway = await startGateway()
  try {
    for (const era of ERAS) for (let i = 0; i < 50; i++) await send(gateway, era, call({ kind: 'small' }))
    // The API is loaded at the first request for it.
    for (const door of [...CALL_DOORS, ...OTHER_DOORS]) await sendApi(gateway, door, '{}')
    for (const page of PAGES) await readApi(gateway, page)
    for (const { name, isOnce, run } of kinds) {
      for (const era of isOnce === true ? (['modern'] as const) : ERAS) {
        await gateway.longestTurn()
        await run(gateway, era)
        await delay(20)
        delays.set(`${name} ${era}`, await gateway.longestTurn())
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
    const rounds: ReadonlyMap<string, Turn>[] = []
    for (let i = 0; i < ROUNDS; i++) rounds.push(await measureRound(kinds))
    printTable(
      `Hostile clients and servers: the longest turn of the gateway's event loop (medians of ${ROUNDS} rounds), at most ${GOAL_MS} ms of CPU time`,
      ['what', ...ERAS.flatMap((era) => [`${era} ms`, 'CPU ms', ''])],
      kinds.map(({ name }) => [name, ...ERAS.flatMap((era) => cellsOf(rounds, `${name} ${era}`))]),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function cellsOf(rounds: readonly ReadonlyMap<string, Turn>[], key: string): readonly string[] {
  const turns = rounds.flatMap((measured) => measured.get(key) ?? [])
  if (turns.length === 0) return ['', '', '']
  const cpuMs = median(turns.map((turn) => turn.cpuMs))
  return [digits(median(turns.map(({ ms }) => ms))), digits(cpuMs), cpuMs > GOAL_MS ? 'over' : '']
}
