import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { type CounterStore, type LimitAnswer, type LimitUse, memoryCounters } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { runs } from '../../../testing/src/runs.ts'

const HOUR_MS = 3_600_000

function use(key: string, max = 1, windowMs = 60_000): LimitUse {
  return { key, max, windowMs }
}

/** What was asked, with the answers of the file and of memory. */
type Taken = readonly [uses: readonly LimitUse[], own: LimitAnswer, other: LimitAnswer]

function shown({ allowed, refused, remaining, resetMs }: LimitAnswer) {
  return { allowed, refused, remaining, resetMs }
}

/** A machine that can be booted anew, with a wall clock that anybody may set. */
function machine(t: TestContext) {
  const path = join(scratchFolder(t), 'state.db')
  const now = { monotonicMs: 1_000_000, wallMs: 1_700_000_000_000 }
  const clock = { monotonicMs: () => now.monotonicMs, wallMs: () => now.wallMs }
  return {
    now,
    boot: (bootId: string | undefined) => openScratchStores(t, { path, clock, bootId }),
    pass(ms: number) {
      now.monotonicMs += ms
      now.wallMs += ms
    },
  }
}

/** What one take asks for: keys and windows. One key has two windows, always both, as with two rules. */
const WINDOWS = fc.constantFrom(
  [['a', 1000]],
  [['b', 3000]],
  [
    ['b', 3000],
    ['a', 1000],
  ],
  [
    ['c', 1000],
    ['c', 3000],
  ],
  [['budget', 1000]],
  [
    ['a', 1000],
    ['budget', 1000],
  ],
) as fc.Arbitrary<readonly (readonly [key: string, windowMs: number])[]>
/** Takes that come at once, of which some are given back. */
const AT_ONCE = fc.array(
  fc.record({ windows: WINDOWS, max: fc.integer({ min: 1, max: 5 }), givesBack: fc.boolean() }),
  { maxLength: 12 },
)

describe('the counters of openSqliteStores', () => {
  it('count takes that share a transaction like those in memory, one after the other', async (t) => {
    const clock = manualClock()
    const { counters } = openScratchStores(t, { path: join(scratchFolder(t), 'state.db'), clock })
    const memory = memoryCounters({ clock })
    const groups = fc.array(fc.record({ group: AT_ONCE, passMs: fc.constantFrom(0, 400, 1000) }), { maxLength: 6 })
    let run = 0
    await fc.assert(
      fc.asyncProperty(groups, async (steps) => {
        const prefix = `${run++}:`
        let earlier: readonly Taken[] = []
        for (const { group, passMs } of steps) {
          const asked = group.map(({ windows, max }) =>
            windows.map(([key, windowMs]) =>
              key === 'budget'
                ? { key: prefix + key, max: 12, windowMs, cost: max }
                : { key: prefix + key, max, windowMs },
            ),
          )
          // In one transaction: takes, then the give-backs and settlements of earlier ones, then as many takes again.
          const takes = () => Promise.all(asked.map(async (uses) => counters.take(uses)))
          const endIn = async (store: CounterStore, uses: readonly LimitUse[], answer: LimitAnswer) =>
            uses.some(({ cost }) => cost !== undefined)
              ? store.settle(
                  uses,
                  answer,
                  uses.map(({ cost = 1 }) => Math.floor(cost / 2)),
                )
              : store.giveBack(uses, answer)
          const giveBack = async ([uses, answer]: Taken) => endIn(counters, uses, answer)
          const [first, , second] = await Promise.all([takes(), Promise.all(earlier.map(giveBack)), takes()])
          const taken = [...first, ...second]
          const expected: LimitAnswer[] = []
          for (const uses of asked) expected.push(await Promise.resolve(memory.take(uses)))
          for (const [uses, , answer] of earlier) await endIn(memory, uses, answer)
          for (const uses of asked) expected.push(await Promise.resolve(memory.take(uses)))
          assert.deepEqual(taken.map(shown), expected.map(shown))
          earlier = [...asked.entries()].flatMap(([i, uses]): Taken[] => {
            const [own, other] = [taken[i], expected[i]]
            return group[i]?.givesBack === true && own && other ? [[uses, own, other]] : []
          })
          clock.advance(passMs)
        }
      }),
      runs(60, 60),
    )
  })

  it('keep uses that come at once in one row, and give back one of them', async (t) => {
    const clock = manualClock()
    const path = join(scratchFolder(t), 'state.db')
    const { counters } = openScratchStores(t, { path, clock })
    const asked = [use('a', 20)]
    const taken = await Promise.all(Array.from({ length: 20 }, async () => counters.take(asked)))
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    assert.equal(db.prepare('SELECT count(*) AS count FROM counter_uses').get()?.['count'], 1)
    assert.equal((await counters.take(asked)).allowed, false)
    await counters.giveBack(asked, taken[3])
    assert.equal((await counters.take(asked)).allowed, true)
    assert.equal((await counters.take(asked)).allowed, false)
  })

  it('take no notice of the wall clock while the machine runs', async (t) => {
    const { now, boot, pass } = machine(t)
    const { counters } = boot('a')
    await counters.take([use('k')])
    now.wallMs += 365 * 24 * HOUR_MS
    assert.equal((await counters.take([use('k')])).resetMs, 60_000)
    now.wallMs -= 366 * 24 * HOUR_MS
    pass(59_999)
    assert.equal((await boot('a').counters.take([use('k')])).allowed, false)
    pass(1)
    assert.equal((await counters.take([use('k')])).allowed, true)
  })

  it('carry uses over a boot by the time that the machine was off', async (t) => {
    const { now, boot, pass } = machine(t)
    await boot('a').counters.take([use('k', 2)])
    pass(10_000)
    await boot('a').counters.take([use('k', 2)])
    now.wallMs += 25_000
    now.monotonicMs = 5000
    const { counters } = boot('b')
    // 20 s off and 5 s up: the uses are 35 s and 25 s old.
    assert.equal((await counters.take([use('k', 2)])).resetMs, 25_000)
    pass(24_999)
    assert.equal((await counters.take([use('k', 2)])).allowed, false)
    pass(1)
    assert.equal((await counters.take([use('k', 2)])).allowed, true)
    assert.equal((await counters.take([use('k', 2)])).resetMs, 10_000)
  })

  it('free no use early when the wall clock went back while the machine was off', async (t) => {
    const { now, boot, pass } = machine(t)
    await boot('a').counters.take([use('k')])
    now.wallMs -= HOUR_MS
    now.monotonicMs = 1000
    const { counters } = boot('b')
    assert.equal((await counters.take([use('k')])).resetMs, 59_000)
    pass(59_000)
    assert.equal((await counters.take([use('k')])).allowed, true)
  })

  it('recognise a boot by a clock that is behind, if the system has no boot id', async (t) => {
    const { now, boot } = machine(t)
    await boot(undefined).counters.take([use('k')])
    now.monotonicMs = 10
    now.wallMs += 60_000 - 1
    assert.equal((await boot(undefined).counters.take([use('k')])).resetMs, 1)
  })

  it('never let time go back for one process that another has seen', async (t) => {
    const { now, boot } = machine(t)
    const [first, second] = [boot('a'), boot('a')]
    await first.counters.take([use('k')])
    now.monotonicMs -= 100
    assert.equal((await second.counters.take([use('k')])).resetMs, 60_000)
  })

  it('hold at most maxKeys keys: a use of another is refused until one has expired', async (t) => {
    const clock = manualClock()
    const { counters } = openScratchStores(t, { clock, counters: { maxKeys: 2 } })
    await counters.take([use('a')])
    clock.advance(400)
    await counters.take([use('b')])
    for (const ask of [counters.peek, counters.take]) {
      const { allowed, refused, resetMs } = await ask([use('b', 5), use('c')])
      assert.deepEqual([allowed, refused, resetMs], [false, 1, 59_600])
    }
    clock.advance(59_599)
    assert.equal((await counters.peek([use('c')])).allowed, false)
    clock.advance(1)
    assert.equal((await counters.peek([use('c')])).allowed, true)
    assert.equal((await counters.take([use('c')])).allowed, true)
  })

  it('forget keys and uses whose windows have passed, as new ones come', async (t) => {
    const clock = manualClock()
    const path = join(scratchFolder(t), 'state.db')
    const { counters } = openScratchStores(t, { path, clock })
    for (let i = 0; i < 40; i++) await counters.take([use(`old-${i % 20}`, 10)])
    clock.advance(60_000)
    for (let i = 0; i < 20; i++) await counters.take([use('new', 100)])
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    const count = (sql: string): unknown => db.prepare(sql).get()?.['count']
    assert.equal(count('SELECT count(*) AS count FROM counter_keys'), 1)
    assert.equal(count('SELECT counter_keys AS count FROM machine'), 1)
    assert.equal(count('SELECT count(*) AS count FROM counter_uses'), 20)
  })

  it('forget passed uses of a key that is never idle, also if each take is a transaction of its own', async (t) => {
    const clock = manualClock()
    const path = join(scratchFolder(t), 'state.db')
    const { counters } = openScratchStores(t, { path, clock })
    for (let i = 0; i < 200; i++) {
      await counters.take([use('busy', 100)])
      clock.advance(2000)
    }
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    const { count } = db.prepare('SELECT count(*) AS count FROM counter_uses').get() ?? {}
    // 30 are in the window of a minute.
    assert.ok(Number(count) < 30 + 32, `${String(count)} uses`)
  })

  it('forget a key when its only use is given back', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { counters } = openScratchStores(t, { path, counters: { maxKeys: 1 } })
    await counters.giveBack([use('a')], await counters.take([use('a')]))
    assert.equal((await counters.take([use('b')])).allowed, true)
  })
})
