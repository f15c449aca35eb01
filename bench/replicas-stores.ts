import { createClient } from '@redis/client'
import type { CounterStore } from '@toolgate/core/stores'
import { openPostgresStores, statement } from '@toolgate/stores/postgres'
import { openRedisCounters } from '@toolgate/stores/redis'
import { binary } from '../tests/support/binaries.ts'
import { startPostgres, startRedis } from '../tests/support/own-server.ts'
import { digits, median, printTable } from './lib.ts'
import { cpuUsOf } from './process-cpu.ts'

/**
 * What the stores of many replicas bear: operations a second over the wall clock, with the engines on the same machine, beside
 * the least that each engine does. Postgres waits for the disk, as it does in production.
 */
const AT_ONCE = 64
const ROUNDS = 5
const ROUND_MS = 1000
const RULES = 3
const REDIS_BUDGET = 15_000

interface Case {
  readonly name: string
  readonly floor: string
  readonly run: (i: number) => Promise<unknown>
  readonly budget?: number
}

function program(name: string): string {
  const found = binary(name)
  if (found === undefined) throw new Error(`${name} is not on this machine`)
  return found
}

const redis = await startRedis(program('redis-server'))
const postgres = await startPostgres({ postgres: program('postgres'), initdb: program('initdb') }, ['-c', 'fsync=on'])
const redisUrl = `redis://127.0.0.1:${redis.port}`
const counters = await openRedisCounters({ url: redisUrl, silenceMs: 10_000 })
await counters.reopen()
const client = createClient({ url: redisUrl, RESP: 2, commandOptions: { timeout: 0 } })
await client.connect()
const bareSha = await client.scriptLoad('return 1')
const stores = await openPostgresStores({
  url: `postgres://postgres@127.0.0.1:${postgres.port}/postgres`,
  approvals: { maxKept: 1_000_000 },
})

const quick = await openPostgresStores({
  url: `postgres://postgres@127.0.0.1:${postgres.port}/postgres`,
  counters: { survives: 'process' },
})

/** Calls of a thousand users, each with three rules: their own, their tenant's and everybody's. */
const taking = (store: CounterStore) => async (i: number) => {
  const keys = [`user-${i % 1000}`, `tenant-${i % 10}`, 'all'].slice(0, RULES)
  const { allowed } = await store.take(keys.map((key) => ({ key, max: 1_000_000, windowMs: 60_000 })))
  if (!allowed) throw new Error('a call was refused')
}

async function approve(i: number): Promise<void> {
  const { approvals } = stores
  const user = `user-${process.hrtime.bigint()}-${i}`
  const binding = { tenant: 'acme', user, tool: 't', definitionHash: 'd', inputHash: 'i', run: undefined }
  const nowMs = Date.now()
  const { id } = await approvals.request(binding, { path: '/a' }, nowMs)
  await approvals.decide(id, { decision: 'reject', by: 'ada', atMs: nowMs })
}

const approved = await spendable(20_000)
async function spendable(count: number): Promise<string[]> {
  await stores.database.query(
    statement(`INSERT INTO toolgate.approvals (id, binding, asker, follows, tool, status, requested_at, expires_at, characters, request)
      SELECT n::text, sha256(n::text::bytea), sha256(n::text::bytea), 0, '"t"', 'approved', $1, $2, 2,
        '{"tool":"t","definitionHash":"d","inputHash":"i","input":{}}' FROM generate_series(1, $3::int) n`),
    [Date.now(), Date.now() + 3_600_000, count],
  )
  return Array.from({ length: count }, (_, i) => String(i + 1))
}

/** Each with a connection of its own. */
const members = await Promise.all(
  Array.from({ length: 8 }, async (_, i) => {
    const replicas = stores.openReplicas({ leaseMs: 2000, answerMs: 10_000, onNotice: () => {} })
    const self = { id: `replica-${i}`, incarnation: String(i), version: '1' }
    await replicas.join(self)
    // A replica asks once at a time.
    let last: Promise<unknown> = Promise.resolve()
    return () => (last = last.then(() => replicas.renew(self, 0)))
  }),
)

const BARE_SCRIPT = 'bare EVALSHA'
const BARE_STATEMENT = 'bare statement'
const BARE_INSERT = 'bare insert, waiting for the disk'
const select = statement('SELECT 1')
await stores.database.query(statement('CREATE TABLE toolgate.floor (n bigint)'))
const insert = statement('INSERT INTO toolgate.floor VALUES ($1)')
const cases: readonly Case[] = [
  { name: BARE_SCRIPT, floor: BARE_SCRIPT, run: () => client.sendCommand(['EVALSHA', bareSha, '0']) },
  { name: 'limits with three rules, Redis', floor: BARE_SCRIPT, run: taking(counters), budget: REDIS_BUDGET },
  { name: BARE_STATEMENT, floor: BARE_STATEMENT, run: () => stores.database.query(select) },
  { name: BARE_INSERT, floor: BARE_INSERT, run: (i) => stores.database.query(insert, [i]) },
  { name: 'limits with three rules, Postgres', floor: BARE_INSERT, run: taking(stores.counters) },
  { name: '… that do not wait for the disk', floor: BARE_STATEMENT, run: taking(quick.counters) },
  { name: 'lease: one renewal', floor: BARE_STATEMENT, run: async (i) => members[i % members.length]?.() },
  { name: 'state: set', floor: BARE_INSERT, run: async (i) => stores.state.set(`halt:${i % 100}`, { at: i }) },
  {
    name: 'approvals: consume',
    floor: BARE_INSERT,
    run: async () => stores.approvals.consume(approved.pop() ?? '1', Date.now()),
  },
  { name: 'approvals: request and decide', floor: BARE_INSERT, run: approve },
]

interface Figure {
  readonly perSecond: number
  readonly clientUs: number
  /** Of Postgres and Redis. */
  readonly enginesUs: number
}

function enginesCpuUs(): number {
  return cpuUsOf(postgres.child.pid ?? 0) + cpuUsOf(redis.child.pid ?? 0)
}

/** Runs one case with many at once for a while. */
async function runFor({ run }: Case, ms: number): Promise<Figure> {
  const cpu = process.cpuUsage()
  const engines = enginesCpuUs()
  const begin = performance.now()
  let count = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (performance.now() - begin < ms) await run(count++)
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  return {
    perSecond: (count * 1000) / (performance.now() - begin),
    clientUs: (user + system) / count,
    enginesUs: (enginesCpuUs() - engines) / count,
  }
}

const figures = new Map<string, Figure[]>(cases.map(({ name }) => [name, []]))
for (const each of cases) await runFor(each, 200)
for (let round = 0; round < ROUNDS; round++)
  for (const each of cases) figures.get(each.name)?.push(await runFor(each, ROUND_MS))

const perSecondOf = (name: string): number => median((figures.get(name) ?? []).map(({ perSecond }) => perSecond))
printTable(
  `Stores of many replicas, ${AT_ONCE} at once`,
  ['what', 'a second', 'client µs CPU', 'engine µs CPU', '× floor', 'budget'],
  cases.map(({ name, floor, budget }) => [
    name,
    Math.round(perSecondOf(name)).toLocaleString('en'),
    digits(median((figures.get(name) ?? []).map(({ clientUs }) => clientUs))),
    digits(median((figures.get(name) ?? []).map(({ enginesUs }) => enginesUs))),
    digits(perSecondOf(floor) / perSecondOf(name)),
    budget === undefined ? '' : `≥ ${budget.toLocaleString('en')}`,
  ]),
)
const missed = cases.filter(({ name, budget = 0 }) => perSecondOf(name) < budget)
if (missed.length > 0) process.exitCode = 1
counters.close()
client.destroy()
await stores.close()
await quick.close()
await Promise.all([redis.stop(), postgres.stop()])
