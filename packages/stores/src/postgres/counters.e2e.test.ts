import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, systemClock } from '@toolgate/core/stores'
import { counterStoreContract, manualClock } from '@toolgate/testing'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'
import type { PostgresStores } from './open-stores.ts'

const USES = [{ key: 'a', max: 3, windowMs: 3_600_000 }]

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the counters of openPostgresStores', () => {
    const postgres = ownPostgres(paths)
    const empty = 'TRUNCATE toolgate.limit_keys, toolgate.limit_uses; UPDATE toolgate.limit_clock SET last_ms = 0'
    let now: Pick<Clock, 'monotonicMs'>
    let shared: Promise<PostgresStores> | undefined
    after(async () => (await shared)?.close())

    counterStoreContract('openPostgresStores', async ({ clock }) => {
      now = clock
      shared ??= postgres.open({ after: () => {} }, { clock: { ...systemClock, monotonicMs: () => now.monotonicMs() } })
      const { counters } = await shared
      await postgres.run(empty)
      return counters
    })

    it('gives a take back once, also if another came at the same time', async (t) => {
      await postgres.run(empty)
      const { counters } = await postgres.open(t, { clock: manualClock() })
      const first = await counters.take(USES)
      await counters.take(USES)
      for (let i = 0; i < 3; i++) await counters.giveBack(USES, first)
      assert.equal((await counters.peek(USES)).remaining, 1)
    })

    it('frees nothing when the clock goes back', async (t) => {
      await postgres.run(empty)
      const clock = manualClock()
      const { counters } = await postgres.open(t, { clock })
      for (let i = 0; i < 3; i++) await counters.take(USES)
      const other = [{ key: 'b', max: 1, windowMs: 1000 }]
      clock.advance(-3_600_000)
      await counters.take(other)
      clock.advance(3_600_000)
      assert.equal((await counters.take(USES)).allowed, false)
      assert.equal((await counters.take(other)).allowed, false, 'it was taken now, and not an hour ago')
    })

    it('counts by the server’s clock, and deletes keys whose windows are over as others are used', async (t) => {
      await postgres.run(empty)
      const { counters } = await postgres.open(t)
      const brief = (key: string) => [{ key, max: 1, windowMs: 50 }]
      for (let i = 0; i < 50; i++) await counters.take(brief(`${i}`))
      while (!(await counters.take(brief('0'))).allowed) await sleep(10)
      const [late] = [await counters.take(USES)]
      assert.ok(Math.abs((late.atMs ?? 0) - Date.now()) < 60_000)
      for (;;) {
        await counters.take(brief('again'))
        const [row] = await postgres.run('SELECT count(*)::int AS keys FROM toolgate.limit_keys')
        if (Number(row?.['keys']) <= 3) break
        await sleep(10)
      }
      const [row] = await postgres.run('SELECT count(*)::int AS uses FROM toolgate.limit_uses')
      assert.ok(Number(row?.['uses']) <= 3)
    })

    it('counts exactly also where it does not wait for the disk', async (t) => {
      await postgres.run(empty)
      const { counters } = await postgres.open(t, { counters: { survives: 'process' } })
      const answers = await Promise.all(Array.from({ length: 50 }, async () => counters.take(USES)))
      assert.equal(answers.filter(({ allowed }) => allowed).length, 3)
    })

    it('finds uses by their index, also in a table that is new', async (t) => {
      await postgres.empty()
      const { counters } = await postgres.open(t, { maxConnections: 1 })
      for (let i = 0; i < 300; i++) {
        const uses = [{ key: `${i % 7}`, max: 1000, windowMs: 60_000 }]
        const taken = await counters.take(uses)
        if (i % 3 === 0) await counters.giveBack(uses, taken)
      }
      for (;;) {
        const [read] = await postgres.run(
          "SELECT idx_scan::int, seq_scan::int FROM pg_stat_user_tables WHERE relname = 'limit_uses'",
        )
        // The server writes its statistics some time later.
        if (Number(read?.['idx_scan']) < 300) await sleep(50)
        else {
          // Making the index reads the table once.
          assert.equal(read?.['seq_scan'], 1)
          break
        }
      }
    })

    it('keeps two takes of the same keys in another order from waiting for each other', async (t) => {
      await postgres.run(empty)
      const { counters } = await postgres.open(t)
      const keys = Array.from({ length: 6 }, (_, i) => ({ key: `${i}`, max: 1000, windowMs: 60_000 }))
      const takes = Array.from({ length: 200 }, async (_, i) => counters.take(i % 2 === 0 ? keys : keys.toReversed()))
      assert.ok((await Promise.all(takes)).every(({ allowed }) => allowed))
      assert.equal((await counters.peek(keys)).remaining, 799)
    })
  })
})
