import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Clock, CounterStore, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import { type ManualClock, manualClock } from './manual-clock.ts'

type Make = (options: { clock: Pick<Clock, 'monotonicMs'> }) => Promise<CounterStore>

/**
 * Defines the tests that every counter store passes: sliding windows are exact, and uses count together or not at all.
 * @example
 * counterStoreContract('memoryCounters', async (options) => memoryCounters(options))
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

    it('adds up the costs of uses, and says what is left where there is too little', async () => {
      const { clock, store } = await start()
      const cost = (amount: number) => [use('a', 500, 1000, amount)]
      assertAnswer(await store.take(cost(300)), { allowed: true, refused: -1, remaining: 200, resetMs: 0 })
      clock.advance(400)
      assertAnswer(await store.take(cost(150)), { allowed: true, refused: -1, remaining: 50, resetMs: 0 })
      assertAnswer(await store.take(cost(51)), { allowed: false, refused: 0, remaining: 50, resetMs: 600 })
      assertAnswer(await store.peek(cost(400)), { allowed: false, refused: 0, remaining: 50, resetMs: 1000 })
      assertAnswer(await store.take(cost(501)), { allowed: false, refused: 0, remaining: 50, resetMs: 1000 })
      clock.advance(600)
      assertAnswer(await store.take(cost(350)), { allowed: true, refused: -1, remaining: 0, resetMs: 0 })
      assertAnswer(await store.take(cost(0)), { allowed: true, refused: -1, remaining: 0, resetMs: 0 })
    })

    it('adds up costs exactly as far as numbers are exact', async () => {
      const { clock, store } = await start()
      const most = Number.MAX_SAFE_INTEGER
      // This is longer than any key lives, but a few uses keep the key alive.
      for (let round = 0; round < 4; round++) {
        for (const cost of [1, 2, 3]) await store.take([use('a', most, 1000, cost)])
        assert.equal((await store.take([use('a', most, 1000, most - 7)])).remaining, 1)
        assert.equal((await store.take([use('a', most, 1000, 2)])).remaining, 1)
        clock.advance(1)
        assert.equal((await store.take([use('a', most, 1000, 1)])).remaining, 0)
        assert.equal((await store.take([use('a', most, 1000, 1)])).allowed, false)
        clock.advance(999)
        assert.equal((await store.take([use('a', most, 1000, most - 1)])).remaining, 0)
        clock.advance(1001)
      }
    })

    it('counts the costs of several limits together or not at all', async () => {
      const { store } = await start()
      const both = (cost: number) => [use('day', 1000, 1000, cost), use('calls', 2, 1000), use('hour', 500, 1000, cost)]
      assert.equal((await store.take(both(400))).remaining, 1)
      const refused = await store.take(both(200))
      assert.deepEqual([refused.allowed, refused.refused, refused.remaining], [false, 2, 100])
      assert.equal((await store.take(both(100))).allowed, true)
      assert.equal((await store.peek([use('day', 1000, 1000, 500)])).remaining, 0)
    })

    it('settles a take once: less is free at once, until what is left of it leaves the window', async () => {
      const { clock, store } = await start()
      const cost = (amount: number) => [use('a', 500, 1000, amount)]
      const first = await store.take(cost(500))
      clock.advance(100)
      await store.settle(cost(500), first, [120])
      await store.settle(cost(500), first, [0])
      assertAnswer(await store.take(cost(380)), { allowed: true, refused: -1, remaining: 0, resetMs: 0 })
      clock.advance(899)
      assert.equal((await store.peek(cost(1))).allowed, false)
      clock.advance(1)
      assert.equal((await store.peek(cost(120))).remaining, 0)
    })

    it('charges what a take used beyond its cost to what follows', async () => {
      const { clock, store } = await start()
      const cost = (amount: number) => [use('a', 500, 1000, amount)]
      const taken = await store.take(cost(400))
      clock.advance(10)
      await store.settle(cost(400), taken, [700])
      assertAnswer(await store.take(cost(1)), { allowed: false, refused: 0, remaining: 0, resetMs: 990 })
      clock.advance(990)
      assert.equal((await store.take(cost(500))).allowed, true)
    })

    it('settles each use of a take by itself, and nothing for a take that has passed or was refused', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 500, 1000, 500), use('b', 3, 1000), use('c', 90, 2000, 60)]
      const taken = await store.take(uses)
      const refused = await store.take(uses)
      await store.settle(uses, refused, [0, 0, 0])
      assert.equal((await store.peek([use('c', 90, 2000, 31)])).allowed, false)
      await store.settle(uses, taken, [500, 1, 20])
      assert.equal((await store.peek([use('c', 90, 2000, 70)])).remaining, 0)
      assert.equal((await store.peek([use('b', 3, 1000)])).remaining, 1)
      clock.advance(1000)
      const later = await store.take([use('a', 500, 1000, 500)])
      clock.advance(1000)
      await store.take([use('a', 500, 1000, 500)])
      await store.settle([use('a', 500, 1000, 500)], later, [0])
      assert.equal((await store.peek([use('a', 500, 1000, 1)])).allowed, false)
    })

    it('gives a cost back whole', async () => {
      const { clock, store } = await start()
      const uses = [use('a', 500, 1000, 300)]
      await store.take([use('a', 500, 1000, 100)])
      clock.advance(1)
      const taken = await store.take(uses)
      clock.advance(1)
      await store.take([use('a', 500, 1000, 50)])
      for (let i = 0; i < 2; i++) await store.giveBack(uses, taken)
      assert.equal((await store.peek([use('a', 500, 1000, 350)])).remaining, 0)
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

function use(key: string, max: number, windowMs: number, cost?: number): LimitUse {
  return { key, max, windowMs, ...(cost === undefined ? {} : { cost }) }
}

/** Compares an answer without the store's own time and the take's name, which the contract does not fix. */
function assertAnswer({ allowed, refused, remaining, resetMs }: LimitAnswer, expected: LimitAnswer): void {
  assert.deepEqual({ allowed, refused, remaining, resetMs }, expected)
}

async function takeMany(store: CounterStore, uses: readonly LimitUse[], times: number): Promise<number> {
  let allowed = 0
  for (let i = 0; i < times; i++) if ((await store.take(uses)).allowed) allowed++
  return allowed
}

const RULES: readonly LimitUse[] = [use('a', 1, 5), use('b', 3, 10), use('c', 4, 7), use('d', 2, 20), use('e', 9, 9)]

/** Limits with costs. */
const BUDGETS: readonly LimitUse[] = [use('m', 10, 8), use('n', 25, 12)]

type Step =
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'take' | 'peek'; readonly uses: readonly LimitUse[] }
  | { readonly kind: 'giveBack'; readonly nth: number }
  | { readonly kind: 'settle'; readonly nth: number; readonly share: number }

const someUse = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...RULES) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...BUDGETS), fc.integer({ min: 0, max: 9 }))
      .map(([budget, cost]) => ({ ...budget, cost })),
  },
)
const someUses = fc.array(someUse, { minLength: 1, maxLength: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 6 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('take' as const), uses: someUses }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('peek' as const), uses: someUses }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('giveBack' as const), nth: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      nth: fc.nat(20),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
)

interface Taken {
  uses: readonly LimitUse[]
  readonly atMs: number
  readonly answer: LimitAnswer
  isSettled?: true
}

/** Runs the steps on a store and on a list of all takes, and compares each answer. */
async function runBeside(make: Make, steps: readonly Step[]): Promise<void> {
  const clock = manualClock(0)
  const store = await make({ clock })
  const standing: Taken[] = []
  for (const next of steps) {
    if (next.kind === 'advance') clock.advance(next.ms)
    else if (next.kind === 'giveBack') {
      const [taken] = standing[next.nth]?.isSettled ? [] : standing.splice(next.nth, 1)
      if (taken) await store.giveBack(taken.uses, taken.answer)
    } else if (next.kind === 'settle') {
      const taken = standing[next.nth]
      if (taken) await settleBoth(store, taken, next.share)
    } else {
      const answer = await store[next.kind](next.uses)
      assertAnswer(answer, answerByList(standing, next.uses, clock.monotonicMs()))
      if (next.kind === 'take' && answer.allowed) standing.push({ uses: next.uses, atMs: clock.monotonicMs(), answer })
    }
    for (const rule of [...RULES, ...BUDGETS]) assertNeverMore(standing, rule)
  }
}

/** Lowers the costs of a take, and leaves uses without a cost unchanged. */
async function settleBoth(store: CounterStore, taken: Taken, share: number): Promise<void> {
  const { uses, answer } = taken
  const costs = uses.map(({ cost }) => (cost === undefined ? 1 : Math.floor(cost * share)))
  await store.settle(uses, answer, costs)
  if (taken.isSettled) return
  taken.isSettled = true
  taken.uses = uses.map((one, i) => (one.cost === undefined ? one : { ...one, cost: costs[i] as number }))
}

function answerByList(standing: readonly Taken[], uses: readonly LimitUse[], nowMs: number): LimitAnswer {
  let remaining = Number.POSITIVE_INFINITY
  for (const [i, { key, max, windowMs, cost = 1 }] of uses.entries()) {
    const earlier = sumOf(uses.slice(0, i).filter((other) => other.key === key))
    const heldAt = (atMs: number): number =>
      sumOf(takesOf(standing, key).filter((taken) => taken.atMs > atMs - windowMs))
    const room = max - heldAt(nowMs) - earlier
    if (room < cost) {
      let resetMs = 1
      while (resetMs < windowMs && heldAt(nowMs + resetMs) + earlier + cost > max) resetMs++
      return { allowed: false, refused: i, remaining: Math.max(room, 0), resetMs }
    }
    remaining = Math.min(remaining, room - cost)
  }
  return { allowed: true, refused: -1, remaining, resetMs: 0 }
}

function takesOf(standing: readonly Taken[], key: string): { atMs: number; cost: number | undefined }[] {
  return standing.flatMap(({ uses, atMs }) => uses.filter((one) => one.key === key).map(({ cost }) => ({ atMs, cost })))
}

function sumOf(uses: readonly { readonly cost?: number | undefined }[]): number {
  return uses.reduce((sum, { cost = 1 }) => sum + cost, 0)
}

/** Checks that no window of the rule's length contains more uses than its limit, wherever the window begins. */
function assertNeverMore(standing: readonly Taken[], { key, max, windowMs }: LimitUse): void {
  const takes = takesOf(standing, key)
  for (const { atMs: start } of takes) {
    const inside = sumOf(takes.filter(({ atMs }) => atMs >= start && atMs < start + windowMs))
    assert.ok(inside <= max, `${inside} of ${key} were used in ${windowMs} ms; at most ${max} are allowed`)
  }
}
