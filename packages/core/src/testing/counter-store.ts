import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Clock, CounterStore, LimitAnswer, LimitUse, MaybePromise } from '../ports/ports.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'

type Make = (options: { clock: Pick<Clock, 'monotonicMs'> }) => MaybePromise<CounterStore>

/**
 * Defines the tests that every counter store passes: exact sliding windows, all or nothing.
 *
 * @example
 * counterStoreContract('memoryCounters', memoryCounters)
 */
export function counterStoreContract(name: string, make: Make): void {
  describe(`${name} (counter store contract)`, () => {
    const start = async (): Promise<{ clock: ManualClock; store: CounterStore }> => {
      const clock = manualClock()
      return { clock, store: await make({ clock }) }
    }

    it('allows as many uses as the limit and tells how many are left', async () => {
      const { store } = await start()
      const uses = [use('a', 3, 1000)]
      for (const remaining of [2, 1, 0]) {
        assertAnswer(await store.take(uses), { allowed: true, refused: -1, remaining, resetMs: 0 })
      }
      assertAnswer(await store.take(uses), { allowed: false, refused: 0, remaining: 0, resetMs: 1000 })
    })

    it('frees a use exactly one window after it was taken, and not a millisecond before', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 1, 1000)]
      await store.take(uses)
      clock.advance(999)
      const early = await store.take(uses)
      assert.deepEqual([early.allowed, early.resetMs], [false, 1])
      clock.advance(1)
      assert.equal((await store.take(uses)).allowed, true)
    })

    it('never allows a double burst at the edge of a window', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 10, 1000)]
      clock.advance(990)
      assert.equal(await takeMany(store, uses, 10), 10)
      clock.advance(20)
      assert.equal(await takeMany(store, uses, 10), 0)
      clock.advance(980)
      assert.equal(await takeMany(store, uses, 20), 10)
    })

    it('frees uses one by one, as each leaves the window', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 3, 1000)]
      for (let i = 0; i < 3; i++) {
        await store.take(uses)
        clock.advance(100)
      }
      clock.advance(700)
      assert.equal(await takeMany(store, uses, 5), 1)
      clock.advance(100)
      assert.equal(await takeMany(store, uses, 5), 1)
    })

    it('charges nothing for a use that was refused', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 1, 1000)]
      await store.take(uses)
      clock.advance(500)
      assert.equal(await takeMany(store, uses, 50), 0)
      clock.advance(500)
      assert.equal((await store.take(uses)).allowed, true)
    })

    it('takes several uses together or none of them, and names the first that was refused', async () => {
      const { store } = await start()
      await store.take([use('narrow', 1, 1000)])
      const both = [use('wide', 5, 1000), use('narrow', 1, 1000)]
      const refused = await store.take(both)
      assert.deepEqual([refused.allowed, refused.refused, refused.resetMs], [false, 1, 1000])
      assert.equal((await store.take([use('wide', 5, 1000)])).remaining, 4)
    })

    it('tells the smallest number of uses left over all that were asked for', async () => {
      const { store } = await start()
      assert.equal((await store.take([use('a', 9, 1000), use('b', 4, 1000), use('c', 7, 1000)])).remaining, 3)
    })

    it('counts each of several uses of one key', async () => {
      const { store } = await start()
      const twice = [use('a', 3, 1000), use('a', 3, 1000)]
      assert.equal((await store.take(twice)).remaining, 1)
      assert.equal((await store.take(twice)).allowed, false)
      assert.equal((await store.take([use('a', 3, 1000)])).allowed, true)
    })

    it('keeps keys apart, whatever they hold', async () => {
      const { store } = await start()
      for (const key of ['a', 'a:b', 'A', '', '__proto__', 'constructor', '🙂', 'a\0', 'a\uD800']) {
        assert.equal((await store.take([use(key, 1, 1000)])).allowed, true, JSON.stringify(key))
      }
    })

    it('answers a peek as it would a take, and takes nothing', async () => {
      const { store } = await start()
      const uses = [use('a', 1, 1000)]
      const peeks = [await store.peek(uses), await store.peek(uses)]
      assert.deepEqual(
        peeks.map(({ allowed, remaining }) => [allowed, remaining]),
        [
          [true, 0],
          [true, 0],
        ],
      )
      await store.take(uses)
      assert.equal((await store.peek(uses)).allowed, false)
    })

    it('allows everything when nothing is asked for', async () => {
      const { store } = await start()
      assert.equal((await store.take([])).allowed, true)
    })

    it('gives back what was taken, as if it had not been', async () => {
      const { store } = await start()
      const uses = [use('a', 1, 1000), use('b', 1, 1000)]
      await store.giveBack(uses, await store.take(uses))
      assert.equal((await store.take(uses)).allowed, true)
      assert.equal((await store.take(uses)).allowed, false)
    })

    it('gives back the latest take when it is not told which', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 2, 1000)]
      await store.take(uses)
      clock.advance(600)
      await store.take(uses)
      await store.giveBack(uses)
      clock.advance(400)
      assert.equal(await takeMany(store, uses, 3), 2)
    })

    it('gives back the take that it is told, when another has come after it', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 2, 1000)]
      const first = await store.take(uses)
      clock.advance(600)
      await store.take(uses)
      await store.giveBack(uses, first)
      clock.advance(400)
      assert.equal(await takeMany(store, uses, 3), 1)
    })

    it('gives a take back once, however often that is asked for', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 2, 1000)]
      const first = await store.take(uses)
      clock.advance(1)
      await store.take(uses)
      for (let i = 0; i < 3; i++) await store.giveBack(uses, first)
      assert.equal(await takeMany(store, uses, 3), 1)
    })

    it('gives back nothing for a take that was refused, has passed or never was', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 1, 1000)]
      await store.giveBack(uses)
      const first = await store.take(uses)
      await store.giveBack(uses, await store.take(uses))
      assert.equal((await store.take(uses)).allowed, false)
      clock.advance(1000)
      await store.take(uses)
      await store.giveBack(uses, first)
      assert.equal((await store.take(uses)).allowed, false)
    })

    it('never takes more than the limit when many ask at once', async () => {
      const { store } = await start()
      const uses = [use('a', 7, 1000)]
      const answers = await Promise.all(Array.from({ length: 100 }, async () => store.take(uses)))
      assert.equal(answers.filter((answer) => answer.allowed).length, 7)
    })

    it('answers as a plain list of all uses does, whatever comes in whatever order', async () => {
      await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) => runBeside(make, steps)))
    })
  })
}

function use(key: string, max: number, windowMs: number): LimitUse {
  return { key, max, windowMs }
}

/** The contract does not cover the store's own time and name of a take. */
function assertAnswer({ allowed, refused, remaining, resetMs }: LimitAnswer, expected: LimitAnswer): void {
  assert.deepEqual({ allowed, refused, remaining, resetMs }, expected)
}

async function takeMany(store: CounterStore, uses: readonly LimitUse[], times: number): Promise<number> {
  let allowed = 0
  for (let i = 0; i < times; i++) if ((await store.take(uses)).allowed) allowed++
  return allowed
}

const RULES: readonly LimitUse[] = [use('a', 1, 5), use('b', 3, 10), use('c', 4, 7), use('d', 2, 20), use('e', 9, 9)]

type Step =
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'take' | 'peek'; readonly uses: readonly LimitUse[] }
  | { readonly kind: 'giveBack'; readonly nth: number }

const someUses = fc.array(fc.constantFrom(...RULES), { minLength: 1, maxLength: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 6 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('take' as const), uses: someUses }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('peek' as const), uses: someUses }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('giveBack' as const), nth: fc.nat(20) }) },
)

interface Taken {
  readonly uses: readonly LimitUse[]
  readonly atMs: number
  readonly answer: LimitAnswer
}

/** Runs the steps on a store and on a list of everything that was taken, and compares each answer. */
async function runBeside(make: Make, steps: readonly Step[]): Promise<void> {
  const clock = manualClock(0)
  const store = await make({ clock })
  const standing: Taken[] = []
  for (const next of steps) {
    if (next.kind === 'advance') clock.advance(next.ms)
    else if (next.kind === 'giveBack') {
      const [taken] = standing.splice(next.nth, 1)
      if (taken) await store.giveBack(taken.uses, taken.answer)
    } else {
      const answer = await store[next.kind](next.uses)
      assertAnswer(answer, answerByList(standing, next.uses, clock.monotonicMs()))
      if (next.kind === 'take' && answer.allowed) standing.push({ uses: next.uses, atMs: clock.monotonicMs(), answer })
    }
    for (const rule of RULES) assertNeverMore(standing, rule)
  }
}

function answerByList(standing: readonly Taken[], uses: readonly LimitUse[], nowMs: number): LimitAnswer {
  let remaining = Number.POSITIVE_INFINITY
  for (const [i, { key, max, windowMs }] of uses.entries()) {
    const earlier = uses.slice(0, i).filter((other) => other.key === key).length
    const heldAt = (atMs: number): number => timesOf(standing, key).filter((t) => t > atMs - windowMs).length
    const left = max - heldAt(nowMs) - earlier - 1
    if (left < 0) {
      let resetMs = 1
      while (resetMs < windowMs && heldAt(nowMs + resetMs) + earlier >= max) resetMs++
      return { allowed: false, refused: i, remaining: 0, resetMs }
    }
    remaining = Math.min(remaining, left)
  }
  return { allowed: true, refused: -1, remaining, resetMs: 0 }
}

function timesOf(standing: readonly Taken[], key: string): number[] {
  return standing.flatMap(({ uses, atMs }) => uses.filter((one) => one.key === key).map(() => atMs))
}

/** No window of the rule's length, wherever it begins, holds more than its limit. */
function assertNeverMore(standing: readonly Taken[], { key, max, windowMs }: LimitUse): void {
  const times = timesOf(standing, key)
  for (const start of times) {
    const inside = times.filter((t) => t >= start && t < start + windowMs).length
    assert.ok(inside <= max, `${inside} uses of ${key} in ${windowMs} ms; at most ${max} are allowed`)
  }
}
