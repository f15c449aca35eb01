import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Evidence, judge } from './fault-judge.ts'
import { startTraffic } from './fault-traffic.ts'
import { until } from './gateway.ts'
import type { OwnServer } from './own-server.ts'
import { signalAll } from './processes.ts'
import { pick, type Random, randomFrom, shuffle } from './random.ts'
import { type PROGRAMS, type ReplicaSet, startReplicaSet } from './replica-set.ts'

export interface FaultRun {
  readonly seed: number
  readonly faults: number
  /** The longest time, after which no further fault is made. Default: none. */
  readonly maxMs?: number
}

type Paths = Readonly<Record<(typeof PROGRAMS)[number], string>>
type Part = 'replica' | 'redis' | 'postgres'

/** One way in which a part fails. */
interface Fault {
  readonly part: Part
  /** The longest pause; absent: it is killed. */
  readonly pauseMs?: number
}

/** Each ten faults have all of these, in a random order. A lease lasts 2 s. */
const DECK: readonly Fault[] = [
  ...Array.from({ length: 4 }, (): Fault => ({ part: 'replica' })),
  { part: 'replica', pauseMs: 200 },
  { part: 'replica', pauseMs: 4000 },
  { part: 'redis' },
  { part: 'redis', pauseMs: 500 },
  { part: 'postgres' },
  { part: 'postgres', pauseMs: 3000 },
]
const GAP_MS = 500
/** Calls that are acknowledged between two faults, unless nothing works for a while. */
const PROGRESS = 5
const PROGRESS_MS = 3000
const AT_ONCE = 2
const LIMIT = 20
const CLIENTS = 8
const ENDS_MS = 60_000

/** Kills and pauses replicas, Redis and Postgres at random while calls run, and judges what was seen in the end. */
export async function surviveFaults(t: TestContext, paths: Paths, run: FaultRun): Promise<void> {
  const limited = Array.from({ length: 5 + run.faults }, (_, i) => `limited_${i}`)
  const set = await startReplicaSet(paths, {
    tools: ['note', 'pay', 'halted', ...limited],
    limits: JSON.stringify(limited.map((tool) => `work:${tool}:${LIMIT}/86400`)),
    audit: '{ checkpoints: { everySeconds: 1 } }',
  })
  t.after(() => set.stop())
  const traffic = startTraffic(set, { clients: CLIENTS, limited, random: randomFrom(run.seed + 1) })
  const made = await makeFaults(set, run, traffic.count)
  await until(() => allRun(set), ENDS_MS)
  const told = await traffic.stop()
  // The chains of killed replicas are closed by the others.
  await until(
    async () => !judge(await look(set, told, limited)).some(({ promise }) => promise.includes('one end')),
    ENDS_MS,
  ).catch(() => undefined)
  await Promise.all(set.replicas.map(({ server }) => server.end()))
  const evidence = await look(set, told, limited)
  t.diagnostic(`seed ${run.seed}: ${JSON.stringify(Object.fromEntries(made))}; ${describeEvidence(evidence)}`)
  assert.deepEqual(judge(evidence), [])
}

async function makeFaults(set: ReplicaSet, { seed, faults, maxMs = Infinity }: FaultRun, count: () => number) {
  const random = randomFrom(seed)
  const made = new Map<string, number>()
  const down = new Set<OwnServer>()
  const running = new Set<Promise<void>>()
  const startedMs = performance.now()
  for (const fault of deal(faults, random)) {
    if (performance.now() - startedMs > maxMs) break
    await sleep(random() * GAP_MS)
    const before = count()
    await until(() => count() >= before + PROGRESS, PROGRESS_MS).catch(() => undefined)
    while (running.size >= AT_ONCE) await Promise.race(running)
    const up = serversOf(set, fault.part).filter((server) => !down.has(server))
    if (up.length === 0) {
      await Promise.race(running)
      continue
    }
    const server = pick(up, random())
    const kind = `${fault.part} ${fault.pauseMs === undefined ? 'killed' : 'paused'}`
    made.set(kind, (made.get(kind) ?? 0) + 1)
    down.add(server)
    const work: Promise<void> = inflict(server, fault, random()).finally(() => {
      down.delete(server)
      running.delete(work)
    })
    running.add(work)
  }
  await Promise.all(running)
  return made
}

function deal(count: number, random: Random): readonly Fault[] {
  return Array.from({ length: Math.ceil(count / DECK.length) }, () => shuffle(DECK, random))
    .flat()
    .slice(0, count)
}

async function inflict(server: OwnServer, { pauseMs }: Fault, random: number): Promise<void> {
  if (pauseMs === undefined) {
    server.child.kill('SIGKILL')
    return server.restart()
  }
  const go = signalAll(server.child.pid ?? 0, 'SIGSTOP')
  await sleep(random * pauseMs)
  go('SIGCONT')
}

function serversOf(set: ReplicaSet, part: Part): readonly OwnServer[] {
  return part === 'replica' ? set.replicas.map(({ server }) => server) : [set[part]]
}

async function allRun(set: ReplicaSet): Promise<boolean> {
  const answers = await Promise.all(set.replicas.map(({ url }) => set.call(url, 'note', 0)))
  return answers.every((answer) => answer.endsWith(' ran'))
}

async function look(
  set: ReplicaSet,
  told: Pick<Evidence, 'acknowledged' | 'approved' | 'halted'>,
  limited: readonly string[],
): Promise<Evidence> {
  const { records, verdict } = await set.readAudit()
  // The calls that look whether all replicas run have the number 0.
  const executed = set.witness.calls().flatMap(({ params }) => {
    const { n } = params['arguments'] as { readonly n: number }
    return n === 0 ? [] : [{ tool: String(params['name']), n }]
  })
  const limits = new Map(limited.map((tool) => [tool, LIMIT]))
  const { acknowledged, approved, halted } = told
  return { executed, records, acknowledged, approved, halted, limits, findings: verdict.findings }
}

function describeEvidence({ executed, records, acknowledged, approved, halted, limits }: Evidence): string {
  const count = (matches: (tool: string) => boolean) => executed.filter(({ tool }) => matches(tool)).length
  return (
    `${executed.length} executed (${count((tool) => limits.has(tool))} limited, ` +
    `${count((tool) => tool === 'pay')} of ${approved.size} approved), ${acknowledged.length} acknowledged, ` +
    `${halted.length} while halted, ${records.length} records`
  )
}
