import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ClauseCountStore } from '@toolgate/core/stores'
import { manualClock } from './manual-clock.ts'

export interface ClauseCountsUnderTest {
  readonly store: ClauseCountStore
  /** Returns another handle on the same counts, like one in another process. */
  readonly beside: () => Promise<ClauseCountStore>
}

type Make = (
  t: TestContext,
  options: { readonly clock: ReturnType<typeof manualClock> },
) => Promise<ClauseCountsUnderTest>

const NOW = 1_700_000_000_000
const DAY_MS = 24 * 60 * 60_000

/** Defines the tests that every store of clause counts passes. */
export function clauseCountStoreContract(name: string, make: Make): void {
  describe(`${name} (clause count store contract)`, () => {
    it('adds up the hits of all writers, with the latest hit and the earliest beginning', async (t) => {
      const { store, beside } = await make(t, { clock: manualClock(NOW) })
      const other = await beside()
      await store.add([{ id: 'a', hits: 2, lastHitAt: NOW + 5, countedSince: NOW }], { writer: 'one', number: 1 })
      await other.add([{ id: 'a', hits: 3, lastHitAt: NOW + 1, countedSince: NOW - 9 }], { writer: 'two', number: 1 })
      await store.add([{ id: 'a', hits: 0, countedSince: NOW + 7 }], { writer: 'one', number: 2 })
      const sum = { id: 'a', hits: 5, lastHitAt: NOW + 5, countedSince: NOW - 9 }
      assert.deepEqual([await store.read(['a']), await other.read(['a'])], [[sum], [sum]])
    })

    it('keeps a clause without hits, and returns none that it does not know', async (t) => {
      const { store } = await make(t, { clock: manualClock(NOW) })
      const none = { id: 'a', hits: 0, countedSince: NOW }
      await store.add([none], { writer: 'one', number: 1 })
      assert.deepEqual(await store.read(['b', 'a']), [none])
      assert.deepEqual(await store.read([]), [])
      await store.add([{ ...none, hits: 1, lastHitAt: NOW + 1 }], { writer: 'one', number: 2 })
      assert.deepEqual(await store.read(['a']), [{ ...none, hits: 1, lastHitAt: NOW + 1 }])
    })

    it('adds what many processes write at once', async (t) => {
      const { store, beside } = await make(t, { clock: manualClock(NOW) })
      const stores = [store, await beside(), await beside()]
      const ids = Array.from({ length: 30 }, (_, i) => `c${i}`)
      await Promise.all(
        stores.map(async (each, writer) => {
          for (let number = 1; number <= 8; number++) {
            const order = writer % 2 === 0 ? ids : ids.toReversed()
            const counts = order.map((id) => ({ id, hits: 1, lastHitAt: NOW, countedSince: NOW }))
            await each.add(counts, { writer: `w${writer}`, number })
          }
        }),
      )
      const sums = await store.read(ids)
      assert.deepEqual(new Set(sums.map(({ hits }) => hits)), new Set([24]))
      assert.equal(sums.length, ids.length)
    })

    it('forgets a clause that nobody has named for 90 days', async (t) => {
      const clock = manualClock(NOW)
      const { store } = await make(t, { clock })
      const counts = ['a', 'b'].map((id) => ({ id, hits: 1, lastHitAt: NOW, countedSince: NOW }))
      await store.add(counts, { writer: 'one', number: 1 })
      clock.advance(89 * DAY_MS)
      await store.add([{ id: 'a', hits: 0, countedSince: NOW + DAY_MS }], { writer: 'one', number: 2 })
      assert.equal((await store.read(['a', 'b'])).length, 2)
      clock.advance(2 * DAY_MS)
      await store.add([{ id: 'c', hits: 0, countedSince: NOW }], { writer: 'one', number: 3 })
      assert.deepEqual((await store.read(['a', 'b', 'c'])).map(({ id }) => id).toSorted(), ['a', 'c'])
    })
  })
}
