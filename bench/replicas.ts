import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { digits, median, printTable } from './lib.ts'
import { cpuUsOf } from './process-cpu.ts'
import { CALL, CONSOLE_KEY, startReplicas } from './replica-processes.ts'
import { askChild, type ServerProcess } from './server-process.ts'

/**
 * What 1, 2 and 4 replicas of the built gateway bear, on Postgres, which waits for the disk, and Redis, all on this machine; and how
 * long a halt takes. CPU is that of whole processes, for one call: beside the single gateway's, in the same run, in turn.
 */
const COUNTS = [1, 2, 4] as const
/** For each gateway. */
const CONCURRENCY = 16
/** What a gateway does until its code is compiled costs several times as much. */
const WARM_UP_CALLS = 4000
const CALLS = Number(process.env['CALLS'] ?? 2000)
const ROUNDS = Number(process.env['ROUNDS'] ?? 7)
const HALTS = 40
const BUDGET_CPU = 1.6
const BUDGET_HALT_MS = { p50: 100, most: 2000 }
const set = await startReplicas(Math.max(...COUNTS))
const { redis, postgres, upstream, load, single, replicas } = set

/** The processes, by what they are in the table. */
const PARTS = ['gateways', 'Postgres', 'Redis', 'server', 'client'] as const
type Cpu = Readonly<Record<(typeof PARTS)[number], number>>

async function readCpu(gateways: readonly ServerProcess[]): Promise<Cpu> {
  const of = await Promise.all(gateways.map(async (each) => (await each.usage()).cpuUs))
  return {
    gateways: of.reduce((sum, each) => sum + each, 0),
    Postgres: cpuUsOf(postgres.child.pid ?? 0),
    Redis: cpuUsOf(redis.child.pid ?? 0),
    server: cpuUsOf(upstream.pid),
    client: cpuUsOf(load.pid ?? 0),
  }
}

interface LoadResult {
  readonly ms: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly problem?: string
}

interface Round {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** For one call. */
  readonly cpuUs: Cpu
}

async function drive(gateways: readonly ServerProcess[], calls: number): Promise<LoadResult> {
  const order = {
    origins: gateways.map(({ origin }) => origin),
    request: CALL,
    calls,
    concurrency: CONCURRENCY * gateways.length,
  }
  const result = await askChild<LoadResult>(load, order)
  if (result.problem !== undefined) throw new Error(result.problem)
  return result
}

/** On a busy machine Redis may be silent for 50 ms, and then calls are refused. */
const SPARE_ROUNDS = 100
let spare = SPARE_ROUNDS

/** Runs a round, again where limits were refused in it. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!String(error).includes('cannot decide now') || spare-- === 0) throw error
      await delay(1000)
    }
  }
}

async function round(gateways: readonly ServerProcess[]): Promise<Round> {
  const before = await readCpu(gateways)
  const { ms, p50Ms, p99Ms } = await drive(gateways, CALLS)
  const after = await readCpu(gateways)
  const cpuUs = Object.fromEntries(PARTS.map((part) => [part, (after[part] - before[part]) / CALLS])) as Cpu
  return { perSecond: (CALLS * 1000) / ms, p50Ms, p99Ms, cpuUs }
}

async function printCalls(): Promise<boolean> {
  const entrants = [
    { name: 'one gateway, SQLite', gateways: [single], rounds: [] as Round[] },
    ...COUNTS.map((n) => ({
      name: `${n} on Postgres and Redis`,
      gateways: replicas.slice(0, n),
      rounds: [] as Round[],
    })),
  ]
  for (const each of [single, ...replicas]) await again(() => drive([each], WARM_UP_CALLS))
  for (let n = 0; n < ROUNDS; n++)
    for (const { gateways, rounds } of entrants) rounds.push(await again(() => round(gateways)))
  const of = (rounds: readonly Round[], read: (each: Round) => number) => median(rounds.map(read))
  const ratioOf = (rounds: readonly Round[]) =>
    median(rounds.map(({ cpuUs }, i) => cpuUs.gateways / (entrants[0]?.rounds[i]?.cpuUs.gateways ?? Number.NaN)))
  printTable(
    `tools/call, ${CONCURRENCY} at once at each gateway (medians of ${ROUNDS} rounds of ${CALLS})`,
    ['gateways', 'calls/s', 'p50 ms', 'p99 ms', ...PARTS.map((part) => `${part}, µs CPU`), '× one gateway', 'budget'],
    entrants.map(({ name, rounds }, i) => [
      name,
      digits(of(rounds, ({ perSecond }) => perSecond)),
      digits(of(rounds, ({ p50Ms }) => p50Ms)),
      digits(of(rounds, ({ p99Ms }) => p99Ms)),
      ...PARTS.map((part) => digits(of(rounds, ({ cpuUs }) => cpuUs[part]))),
      digits(ratioOf(rounds)),
      i === 0 ? '' : `${BUDGET_CPU} ×`,
    ]),
  )
  console.log('\nCPU of a call, as shares of all processes (what has most of it saturates first):\n')
  for (const { name, rounds } of entrants) {
    const all = PARTS.reduce((sum, part) => sum + of(rounds, ({ cpuUs }) => cpuUs[part]), 0)
    const shares = PARTS.map((part) => `${part} ${Math.round((100 * of(rounds, ({ cpuUs }) => cpuUs[part])) / all)} %`)
    console.log(`- ${name}: ${shares.join(', ')}`)
  }
  if (spare < SPARE_ROUNDS)
    console.log(
      `\n${SPARE_ROUNDS - spare} rounds were made again: Redis had not answered for 50 ms, so limits were refused.`,
    )
  return entrants.slice(1).every(({ rounds }) => ratioOf(rounds) <= BUDGET_CPU)
}

async function askApi(method: string, path: string, body?: object): Promise<{ readonly id: string }> {
  const headers = { authorization: `Bearer ${CONSOLE_KEY}`, 'content-type': 'application/json' }
  const response = await fetch(`${replicas[0]?.origin}/api${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json().catch(() => ({ id: '' }))) as { readonly id: string }
}

async function readNumber(sql: string): Promise<number> {
  const client = new Client(`postgres://postgres@127.0.0.1:${postgres.port}/postgres`)
  await client.connect()
  const { rows } = await client.query<{ n: string }>(`SELECT (${sql}) AS n`)
  await client.end()
  return Number(rows[0]?.n)
}

/** Returns the transactions that the database has committed. Sessions report theirs when they have been idle for 10 s. */
async function commits(): Promise<number> {
  await delay(12_000)
  return readNumber("SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'postgres'")
}

const AUDIT_BYTES = `
  SELECT sum(pg_total_relation_size(oid)) FROM pg_class
  WHERE relkind = 'r' AND relname LIKE 'audit%' AND relnamespace = 'toolgate'::regnamespace`
const AUDIT_CALLS = "SELECT count(*) FROM toolgate.audit WHERE event = 'tool_call'"

/** Prints what replicas ask of the primary when nothing happens, and for each change of the shared state. */
async function printQueries(): Promise<void> {
  const idleMs = 5000
  const [first, beganMs] = [await commits(), performance.now()]
  await delay(idleMs)
  const second = await commits()
  const perSecond = ((second - first) * 1000) / (performance.now() - beganMs)
  const startMs = performance.now()
  await halts()
  const third = await commits()
  const changes = 2 * HALTS
  const perChange = (third - second - (perSecond * (performance.now() - startMs)) / 1000) / changes
  printTable(
    `Transactions of ${replicas.length} replicas at the primary`,
    ['when', 'of all', 'of one replica'],
    [
      ['nothing happens, a second', digits(perSecond), digits(perSecond / replicas.length)],
      ['a halt or a release', digits(perChange), digits(perChange / replicas.length)],
    ],
  )
  const bytes = (await readNumber(AUDIT_BYTES)) / (await readNumber(AUDIT_CALLS))
  console.log(`\nThe audit takes ${Math.round(bytes)} bytes a call in Postgres, indexes included.`)
}

/** Returns how long halts take until every replica has confirmed them. */
async function halts(): Promise<readonly number[]> {
  const took: number[] = []
  for (let n = 0; n < HALTS; n++) {
    const beganMs = performance.now()
    const { id } = await askApi('POST', '/halts', { tool: 'up:tool_0001', reason: 'measured' })
    took.push(performance.now() - beganMs)
    await askApi('DELETE', `/halts/${id}`)
  }
  return took.toSorted((a, b) => a - b)
}

async function printHalts(): Promise<boolean> {
  const quiet = await halts()
  const over = new AbortController()
  const calling = (async () => {
    while (!over.signal.aborted) await again(() => drive(replicas, 500))
  })()
  const busy = await halts()
  over.abort()
  await calling
  const at = (took: readonly number[], share: number) =>
    took[Math.min(HALTS - 1, Math.floor(HALTS * share))] ?? Number.NaN
  printTable(
    `A halt until ${replicas.length} replicas have confirmed it (${HALTS} each)`,
    ['while', 'p50 ms', 'p95 ms', 'most ms', 'budget'],
    [['nothing else happens', quiet] as const, [`${CONCURRENCY} calls at once run at each`, busy] as const].map(
      ([when, took]) => [
        when,
        digits(at(took, 0.5)),
        digits(at(took, 0.95)),
        digits(at(took, 1)),
        `${BUDGET_HALT_MS.p50} ms, always ${BUDGET_HALT_MS.most}`,
      ],
    ),
  )
  return at(quiet, 0.5) <= BUDGET_HALT_MS.p50 && at(busy, 1) <= BUDGET_HALT_MS.most
}

try {
  const kept = [await printCalls(), await printHalts()]
  await printQueries()
  if (kept.includes(false)) process.exitCode = 1
} finally {
  await set.stop()
}
