import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { LimitAnswer, LimitUse } from '../ports/ports.ts'
import { counterStoreContract } from '../../../testing/src/counter-store.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { naiveCounters } from '../../../testing/support/naive-counters.ts'
import { memoryCounters } from './counters.ts'
import { runs } from '../../../testing/src/runs.ts'

counterStoreContract('memoryCounters', async (options) => memoryCounters(options))

function use(key: string, max = 1, windowMs = 1000): LimitUse {
  return { key, max, windowMs }
}

describe('memoryCounters', () => {
  it('forgets keys whose windows have passed, as new ones come', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 1000; i++) counters.take([use(`old-${i}`)])
    assert.equal(counters.size, 1000)
    clock.advance(1000)
    for (let i = 0; i < 1000; i++) counters.take([use(`new-${i}`)])
    assert.ok(counters.size <= 1001, `${counters.size} keys are held`)
  })

  it('holds no more keys than it may: a use of another is refused until one has passed', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 2 })
    counters.take([use('a')])
    clock.advance(400)
    counters.take([use('b')])
    for (let i = 0; i < 2; i++) {
      const { allowed, refused, resetMs } = counters.take([use('b', 5), use('c')])
      assert.deepEqual([allowed, refused, resetMs], [false, 1, 600])
    }
    clock.advance(599)
    assert.equal(counters.take([use('c')]).allowed, false)
    clock.advance(1)
    assert.equal(counters.take([use('c')]).allowed, true)
    assert.equal(counters.size, 2)
  })

  it('never holds more keys than it may, also when one take brings several', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 3 })
    counters.take([use('a'), use('b'), use('c')])
    clock.advance(1000)
    assert.equal(counters.take([use('a'), use('d'), use('e')]).allowed, true)
    assert.equal(counters.size, 3)
    assert.equal(counters.take([use('d', 9), use('f')]).allowed, false)
    clock.advance(1000)
    assert.equal(counters.take([use('a'), use('b'), use('c'), use('d')]).allowed, false)
    assert.ok(counters.size <= 3)
  })

  it('has room again for a key once another was given back', () => {
    const counters = memoryCounters({ clock: manualClock(), maxKeys: 1 })
    const taken = counters.take([use('a')])
    assert.equal(counters.take([use('b')]).allowed, false)
    counters.giveBack([use('a')], taken)
    assert.equal(counters.take([use('b')]).allowed, true)
  })

  it('has room again as early as what is left of a key has passed, once its latest use was given back', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 41 })
    for (let i = 0; i < 40; i++) counters.take([use(`${i}`, 1, 1_000_000 + i)])
    counters.take([use('a', 2)])
    clock.advance(500)
    const latest = counters.take([use('a', 2)])
    assert.deepEqual([counters.take([use('b')]).allowed, counters.take([use('b')]).resetMs], [false, 1000])
    counters.giveBack([use('a', 2)], latest)
    clock.advance(499)
    assert.equal(counters.take([use('b')]).allowed, false)
    clock.advance(1)
    assert.equal(counters.take([use('b')]).allowed, true)
  })

  it('makes no key for a peek', () => {
    const counters = memoryCounters({ clock: manualClock() })
    counters.peek([use('a')])
    assert.equal(counters.size, 0)
  })

  it('counts one key in windows of different lengths', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    const both = [use('a', 4, 1000), use('a', 40, 10_000)]
    for (let i = 0; i < 10; i++) {
      assert.equal(counters.take(both).allowed, true)
      assert.equal(counters.take(both).allowed, true)
      assert.equal(counters.take(both).refused, 0)
      clock.advance(1000)
    }
    clock.advance(-1)
    assert.equal(counters.take(both).allowed, false)
  })

  it('does not let time that goes back free a use', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    counters.take([use('a')])
    clock.advance(-5000)
    assert.equal(counters.take([use('a')]).resetMs, 1000)
    clock.advance(5999)
    assert.equal(counters.take([use('a')]).allowed, false)
    clock.advance(1)
    assert.equal(counters.take([use('a')]).allowed, true)
  })

  it('refuses everything under a limit of none', () => {
    const counters = memoryCounters({ clock: manualClock() })
    assert.equal(counters.take([use('a', 0)]).allowed, false)
  })

  it('forgets everything at once when it has been idle for so long that all has passed', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 5000; i++) counters.take([use(`${i}`)])
    clock.advance(1000)
    counters.peek([use('x')])
    assert.equal(counters.size, 0)
  })

  it('forgets keys that have passed while others of a longer window stay, whatever is asked for meanwhile', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 1000; i++) counters.take([use(`short-${i}`), use(`long-${i}`, 1, 100_000)])
    clock.advance(1000)
    for (let i = 0; i < 40; i++) counters.peek([use('short-0')])
    assert.equal(counters.size, 1000)
  })

  it('forgets nothing of a long window when a short one that came after it has passed', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 1000; i++) counters.take([use(`${i}`, 1, 100_000)])
    counters.take([use('short', 1, 10)])
    clock.advance(10)
    for (let i = 0; i < 1000; i++) assert.equal(counters.take([use(`${i}`, 1, 100_000)]).allowed, false)
  })

  it('forgets each key when its last use has passed, however many uses it had', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    const stays = use('stays', 1, 1_000_000)
    counters.take([stays])
    const usesOf = (i: number) => Array.from({ length: 1 + (i % 9) }, () => use(`${i}`, 99))
    for (let i = 0; i < 20_000; i++) counters.take(usesOf(i))
    clock.advance(500)
    for (let i = 0; i < 20_000; i += 100) counters.take(usesOf(i))
    clock.advance(500)
    for (let i = 0; i < 400; i++) counters.peek([stays])
    assert.equal(counters.size, 201)
    clock.advance(500)
    for (let i = 0; i < 10; i++) counters.peek([stays])
    assert.equal(counters.size, 1)
  })

  it('counts a key of which most uses have passed by those that stay', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 50_000; i++) counters.take([use('a', 50_000)])
    clock.advance(999)
    for (let i = 0; i < 3; i++) assert.equal(counters.peek([use('a', 50_001)]).allowed, true)
    clock.advance(0.5)
    counters.take([use('a', 50_001)])
    clock.advance(0.5)
    assert.equal(counters.take([use('a', 50_000)]).remaining, 49_998)
  })

  it('forgets lengths of windows that are no longer asked for', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    counters.take([use('stays', 1, 1_000_000_000)])
    for (let i = 1; i < 3000; i++) {
      counters.take([use('a', 1, 1 + i / 4)])
      clock.advance(1 + i / 4)
      counters.take([use('a', 1, 1 + i / 4)])
      clock.advance(1 + i / 4)
    }
    for (let i = 0; i < 10; i++) counters.peek([use('stays')])
    assert.equal(counters.size, 1)
  })

  it('has room for fewer keys after a take that brought more than there is room for', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 2 })
    assert.equal(counters.take([use('a'), use('b'), use('c')]).allowed, false)
    assert.equal(counters.take([use('a'), use('b', 1, 10)]).allowed, true)
    assert.equal(counters.take([use('c')]).allowed, false)
    clock.advance(10)
    assert.equal(counters.take([use('c')]).allowed, true)
  })

  it('counts as exactly with a hundred thousand uses in a window', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    const uses = [use('a', 100_000, 1000)]
    for (let i = 0; i < 100_000; i++) {
      if (i % 100 === 0) clock.advance(0.5)
      assert.equal(counters.take(uses).allowed, true)
    }
    assert.deepEqual([counters.take(uses).allowed, counters.take(uses).resetMs], [false, 500.5])
    clock.advance(999.5)
    assert.equal(counters.take(uses).remaining, 99_899)
  })

  it('throws where its clock gives no time, and lets nothing through', () => {
    for (const time of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const counters = memoryCounters({ clock: { monotonicMs: () => time } })
      assert.throws(() => counters.take([use('a')]), { name: 'RangeError', message: /which is not a time/ })
    }
  })

  it('looks for room among many keys a millisecond apart for each ten thousand, and refuses meanwhile', () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 20_000 })
    for (let i = 0; i < 20_000; i++) counters.take([use(`${i}`, 1, 100_000 + i / 10)])
    assert.equal(counters.take([use('new')]).allowed, false)
    clock.advance(100_000)
    assert.equal(counters.take([use('new', 1, 200_000)]).allowed, true)
    assert.equal(counters.take([use('next')]).resetMs, 2)
    clock.advance(1)
    assert.equal(counters.take([use('next')]).allowed, false)
    clock.advance(1)
    assert.equal(counters.take([use('next')]).allowed, true)
  })
})

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

type Step =
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'take' | 'peek'; readonly uses: readonly LimitUse[] }
  | { readonly kind: 'giveBack'; readonly nth: number; readonly told: boolean }

const someUse: fc.Arbitrary<LimitUse> = fc.record({
  key: fc.constantFrom(...KEYS),
  max: fc.constantFrom(0, 1, 2, 3, 5, 40),
  windowMs: fc.constantFrom(1, 7, 7.5, 20, 1000),
})
const someUses = fc.array(someUse, { minLength: 1, maxLength: 4 })
const anAdvance = fc.record({
  kind: fc.constant('advance' as const),
  ms: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(0, 0.5, 1, 6, 7) }, fc.constantFrom(-3, -5000, 3e10, 999)),
})
const aTake = fc.record({ kind: fc.constantFrom('take' as const, 'take' as const, 'peek' as const), uses: someUses })
const aGiveBack = fc.record({ kind: fc.constant('giveBack' as const), nth: fc.nat(9), told: fc.boolean() })
const RUNS = runs(1500, 50_000)

/** Runs the same steps on both stores, and gives both answers of each. */
function besideNaive(steps: readonly Step[], maxKeys?: number): (readonly [LimitAnswer, LimitAnswer])[] {
  const clock = manualClock(0)
  const limit = maxKeys === undefined ? {} : { maxKeys }
  const counters = memoryCounters({ clock, ...limit })
  const naive = naiveCounters({ clock, ...limit })
  const taken: { uses: readonly LimitUse[]; answers: readonly [LimitAnswer, LimitAnswer] }[] = []
  return steps.flatMap((step) => {
    if (step.kind === 'advance') clock.advance(step.ms)
    else if (step.kind === 'giveBack') {
      const [one] = taken.splice(taken.length - 1 - step.nth, 1)
      if (one) {
        counters.giveBack(one.uses, step.told ? one.answers[0] : undefined)
        naive.giveBack(one.uses, step.told ? one.answers[1] : undefined)
      }
    } else {
      const answers = [counters[step.kind](step.uses), naive[step.kind](step.uses)] as const
      if (step.kind === 'take') taken.push({ uses: step.uses, answers })
      assert.ok(counters.size <= (maxKeys ?? KEYS.length))
      return [answers]
    }
    return []
  })
}

describe('memoryCounters beside naive ones', () => {
  it('answers the same, whatever comes in whatever order, however the clock runs, jumps or stands still', () => {
    const steps = fc.array<Step>(
      fc.oneof(
        { weight: 2, arbitrary: anAdvance },
        { weight: 6, arbitrary: aTake },
        { weight: 1, arbitrary: aGiveBack },
      ),
      { maxLength: 80, size: 'max' },
    )
    fc.assert(
      fc.property(steps, (some) => {
        for (const [answer, expected] of besideNaive(some)) assert.deepEqual(answer, expected)
      }),
      RUNS,
    )
  })

  it('has room for as many keys', () => {
    const steps = fc.array<Step>(fc.oneof({ weight: 2, arbitrary: anAdvance }, { weight: 6, arbitrary: aTake }), {
      maxLength: 60,
      size: 'max',
    })
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (some, maxKeys) => {
        for (const [answer, expected] of besideNaive(some, maxKeys)) {
          const { resetMs, ...rest } = answer
          const { resetMs: expectedMs, ...expectedRest } = expected
          assert.deepEqual(rest, expectedRest)
          if (Number.isNaN(expectedMs)) assert.ok(resetMs > 0)
          else assert.equal(resetMs, expectedMs)
        }
      }),
      RUNS,
    )
  })

  it('keeps thousands of keys apart while they come, pass and are given back', () => {
    const clock = manualClock(0)
    const counters = memoryCounters({ clock })
    const naive = new Map<string, number[]>()
    let state = 1
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return (state >>> 8) % below
    }
    for (let i = 0; i < 60_000; i++) {
      if (random(4) === 0) clock.advance(random(3))
      const key = `key-${random(i % 20_000 < 10_000 ? 6000 : 300)}`
      const nowMs = clock.monotonicMs()
      const times = (naive.get(key) ?? []).filter((time) => time + 3000 > nowMs)
      const answer = counters.take([use(key, 8, 3000)])
      assert.equal(answer.allowed, times.length < 8, `${key} at ${nowMs}`)
      if (answer.allowed && random(5) === 0) counters.giveBack([use(key)], answer)
      else if (answer.allowed) times.push(nowMs)
      naive.set(key, times)
    }
    clock.advance(3000)
    counters.peek([use('x')])
    assert.equal(counters.size, 0)
  })
})
