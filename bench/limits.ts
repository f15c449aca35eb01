import { createToolRateLimiter } from '@toolgate/core'
import type { RateLimit } from '@toolgate/core/call'
import { memoryCounters } from '@toolgate/core/stores'
import { type Case, digits, measure, printFigures, printTable } from './lib.ts'

/** What a rate limit costs: a check, its growth with what should not matter, and the memory of all the keys that a store holds. */
const MILLION = 1_000_000
/** As many keys as a store holds unless it is told otherwise. */
const KEYS = 200_000
const MEMORY_MB = 64
const BUDGET = '0.5 µs'
const FLOOR = 'a Map get and an array push'

const clock = { monotonicMs: () => performance.now() }
const TOOL = 'web:search'
let sink = 0

/** Never reached, and always counted. */
const limit = (match: string, more: Partial<RateLimit> = {}): RateLimit => ({
  match,
  max: MILLION,
  windowMs: 50,
  ...more,
})

const repeat =
  (run: (i: number) => unknown): Case['run'] =>
  (count) => {
    for (let i = 0; i < count; i++) if (run(i) === undefined) sink++
  }

const USERS = Array.from({ length: 100_000 }, (_, i) => `user-${i}`)

/** Checks with the limits, of a chat and one of so many users in turn. */
function checking(limits: readonly RateLimit[], users = 1000): Case['run'] {
  const limiter = createToolRateLimiter(limits, { clock })
  return repeat((i) => limiter.check(TOOL, 'chat-1', USERS[i % users]))
}

/** 40 characters, as `10:web:search/60000|4:acme|36:…` has in its parts. */
const keyOf = (i: number): string => `web:search|4:acme|12:user-${String(i).padStart(14, '0')}`

/** Takes of one of so many keys, all of them alive. */
function takingOneOf(keys: number): Case['run'] {
  const counters = memoryCounters({ clock })
  const uses = Array.from({ length: keys }, (_, i) => [{ key: keyOf(i), max: 4, windowMs: 3_600_000 }])
  for (const use of uses) counters.take(use)
  return repeat((i) => counters.take(uses[(i * 7919) % keys] ?? []))
}

/** Takes of a key whose window holds so many uses, from which as many fall as come. */
function takingInWindowOf(held: number): Case['run'] {
  let nowMs = 0
  const counters = memoryCounters({ clock: { monotonicMs: () => nowMs++ } })
  const uses = [{ key: keyOf(0), max: held + 1, windowMs: held }]
  for (let i = 0; i < 2 * held; i++) counters.take(uses)
  return repeat(() => counters.take(uses))
}

/**
 * Resident memory of the process, which has done nothing else yet, before and after, each time after collections. The keys are made as they are used,
 * and once before the first measurement: what making them needs is there already.
 */
let nowMs = 0
const counters = memoryCounters({ clock: { monotonicMs: () => nowMs } })
let made = 0
for (let i = 0; i < KEYS; i++) made += keyOf(i).length
const before = await residentMb()
const used = inUseMb()

async function residentMb(): Promise<number> {
  if (!globalThis.gc) throw new Error('run with --expose-gc')
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc()
  }
  return process.memoryUsage.rss() / 1e6
}

/** What is allocated, of which the system may keep more resident than there is. */
function inUseMb(): number {
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

function useEachKey(): void {
  for (let i = 0; i < KEYS; i++)
    if (!counters.take([{ key: keyOf(i), max: 1000, windowMs: 1000 }]).allowed) throw new Error(`key ${i} was refused`)
}

useEachKey()
const oneUse = { resident: (await residentMb()) - before, inUse: inUseMb() - used }
useEachKey()
const twoUses = { resident: (await residentMb()) - before, inUse: inUseMb() - used }
const refused = counters.take([{ key: 'one more', max: 1, windowMs: 1000 }]).allowed
nowMs += 1000
counters.take([{ key: 'after all have passed', max: 1, windowMs: 1000 }])
const passed = { resident: (await residentMb()) - before, inUse: inUseMb() - used }
printTable(
  `Resident memory of ${KEYS.toLocaleString('en')} keys of ${made / KEYS} characters`,
  ['what', 'MB resident', 'MB in use', 'budget'],
  [
    ['one use each', digits(oneUse.resident), digits(oneUse.inUse), `${MEMORY_MB} MB`],
    ['two uses each', digits(twoUses.resident), digits(twoUses.inUse), ''],
    ['all of them passed, and one came', digits(passed.resident), digits(passed.inUse), ''],
  ],
)

/** A time added to one of so many lists. */
function pushing(keys: number): Case['run'] {
  const lists = new Map<string, number[]>(Array.from({ length: keys }, (_, i) => [keyOf(i), []]))
  const names = [...lists.keys()]
  return repeat((i) => {
    const times = lists.get(names[(i * 7919) % keys] ?? '') ?? []
    if (times.length === 4) times.length = 0
    return times.push(clock.monotonicMs())
  })
}

const figures = await measure([
  { name: FLOOR, run: pushing(1000) },
  { name: 'one check of one limit', run: checking([limit(TOOL)], 1), budget: BUDGET },
  { name: '… for one of 1,000 users in turn', run: checking([limit(TOOL)]) },
  { name: '… for a user who was not met lately', run: checking([limit(TOOL)], USERS.length) },
  { name: 'one take of a key, as a gate does', run: takingOneOf(1000), budget: BUDGET },
  {
    name: 'a check of three limits, all or none',
    run: checking([limit(TOOL), limit('*'), limit('*', { per: ['user'] })]),
  },
])
printFigures('One check of a rate limit', figures, FLOOR)

const others = (count: number): readonly RateLimit[] =>
  Array.from({ length: count }, (_, i) => limit(i % 2 === 0 ? `other:tool_${i}` : `other${i}:*`))

const worse: string[] = []
await growth(
  'When limits grow that do not name the tool',
  [1, 100, 10_000],
  [{ what: 'one check', at: (size) => checking([limit(TOOL), ...others(size)]) }],
)
await growth(
  'When uses in the window of a key grow',
  [1, 100, 10_000, MILLION - 1],
  [{ what: 'one take', at: takingInWindowOf }],
)
// What does not fit the processor's caches costs more to read, so the growth is compared with that of the floor.
await growth(
  'When keys grow',
  [100, 10_000, 100_000],
  [
    { what: FLOOR, at: pushing },
    { what: 'one take', at: takingOneOf },
  ],
)

interface Kind {
  readonly what: string
  readonly at: (size: number) => Case['run']
}

/** None may cost three times as much at the end, beside how the first in the table has grown where there are two. */
async function growth(title: string, sizes: readonly number[], kinds: readonly Kind[]): Promise<void> {
  const grown: number[] = []
  const rows: string[][] = []
  for (const { what, at } of kinds) {
    const cases = sizes.map((size) => ({ name: `${size}`, run: at(size) }))
    const costs = (await measure(cases, { rounds: 5, roundMs: 20 })).map(({ lowUs }) => lowUs)
    grown.push((costs.at(-1) as number) / (costs[0] as number))
    rows.push([what, ...costs.map(digits), digits(grown.at(-1) as number)])
  }
  printTable(title, ['µs CPU', ...sizes.map((size) => size.toLocaleString('en')), '× at the end'], rows)
  const beside = kinds.length > 1 ? (grown[0] as number) : 1
  if ((grown.at(-1) as number) > 3 * Math.max(1, beside)) worse.push(title)
}

if (refused) worse.push('a key beyond the bound was let through')
if (oneUse.inUse > MEMORY_MB) worse.push(`all keys take ${digits(oneUse.inUse)} MB`)
if (passed.inUse > 5) worse.push(`${digits(passed.inUse)} MB are kept of what has passed`)
if (sink > 0) throw new Error('a check gave nothing')
console.log(worse.length === 0 ? '\nNone grows.' : `\nWorse than it should be: ${worse.join('; ')}.`)
if (worse.length > 0) process.exitCode = 1
