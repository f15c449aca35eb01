import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { manualClock } from '@toolgate/testing'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

const LOST = { code: 'lock_lost' }

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the lock of openPostgresStores', () => {
    const postgres = ownPostgres(paths)
    /** What somebody who took the session over leaves behind. */
    const takeOver = async () => postgres.run("UPDATE toolgate.leases SET token = nextval('toolgate.tickets')")

    it('aborts a turn that another has taken over, and keeps its late writes out', async (t) => {
      await postgres.empty()
      const { lock, state } = await postgres.open(t, { lock: { leaseMs: 90 } })
      const { fencingToken, lost, release } = await lock.acquire('s')
      const fence = { session: 's', fencingToken }
      await state.set('pause', 'mine', { fence })
      assert.equal(await state.add('pause', 'again', { fence }), false)
      await takeOver()
      await assert.rejects(async () => state.set('pause', 'late', { fence }), LOST)
      await assert.rejects(async () => state.add('new', 'late', { fence }), LOST)
      assert.deepEqual([await state.get('pause'), await state.get('new')], ['mine', undefined])
      assert.ok(lost)
      while (!lost.aborted) await sleep(10)
      assert.equal((lost.reason as { code: string }).code, 'lock_lost')
      await release()
      assert.equal((await postgres.run('SELECT token FROM toolgate.leases')).length, 1, 'it ends the turn of no other')
    })

    it('refuses a write of a turn that has ended, and of a session of another', async (t) => {
      await postgres.empty()
      const { lock, state } = await postgres.open(t)
      const { fencingToken, release } = await lock.acquire('s')
      await assert.rejects(async () => state.set('a', 1, { fence: { session: 'other', fencingToken } }), LOST)
      await release()
      await assert.rejects(async () => state.set('a', 1, { fence: { session: 's', fencingToken } }), LOST)
      assert.deepEqual(await state.list(''), [])
    })

    it('is kept by a replica that lives for longer than a lease does', async (t) => {
      await postgres.empty()
      const [first, second] = [await postgres.open(t, { lock: { leaseMs: 300 } }), await postgres.open(t)]
      const { lost, release } = await first.lock.acquire('s')
      await assert.rejects(second.lock.acquire('s', { deadlineMs: 1000 }), { code: 'lock_timeout' })
      assert.equal(lost?.aborted, false)
      await release()
      await (await second.lock.acquire('s')).release()
    })

    it('goes to the next when its holder is gone, with a greater token', async (t) => {
      await postgres.empty()
      const clock = manualClock()
      const [dead, next] = [await postgres.open(t, { clock }), await postgres.open(t, { clock })]
      const lease = await dead.lock.acquire('s')
      await dead.database.close()
      await assert.rejects(next.lock.acquire('s', { deadlineMs: 60 }), { code: 'lock_timeout' })
      clock.advance(15_000)
      const { fencingToken, release } = await next.lock.acquire('s')
      assert.ok(fencingToken > lease.fencingToken)
      await release()
    })

    it('aborts the turns of a replica that cannot renew them', async (t) => {
      await postgres.empty()
      const { lock, database } = await postgres.open(t, { lock: { leaseMs: 100 } })
      const { lost } = await lock.acquire('s')
      await database.close()
      assert.ok(lost)
      while (!lost.aborted) await sleep(10)
    })

    it('gives a lease no longer life when the clock is set back', async (t) => {
      await postgres.empty()
      const clock = manualClock(10_000_000)
      const [dead, next] = [await postgres.open(t, { clock }), await postgres.open(t, { clock })]
      await dead.lock.acquire('s')
      await dead.database.close()
      clock.advance(-3_600_000)
      await assert.rejects(next.lock.acquire('s', { deadlineMs: 30 }), { code: 'lock_timeout' })
      clock.advance(15_000)
      await (await next.lock.acquire('s', { deadlineMs: 10_000 })).release()
    })

    it('lets 50 wait with two connections, and keeps nothing of sessions that are idle', async (t) => {
      await postgres.empty()
      const [first, second] = [
        await postgres.open(t, { maxConnections: 2 }),
        await postgres.open(t, { maxConnections: 2 }),
      ]
      const sessions = Array.from({ length: 50 }, (_, i) => `s${i}`)
      const held = await Promise.all(sessions.map(async (session) => first.lock.acquire(session)))
      const waiting = sessions.map(async (session) => second.lock.acquire(session, { deadlineMs: 50_000 }))
      await second.state.set('meanwhile', 1)
      await Promise.all(held.map(async (lease) => lease.release()))
      for (const lease of await Promise.all(waiting)) await lease.release()
      const left = 'SELECT token FROM toolgate.leases UNION ALL SELECT ticket FROM toolgate.lease_waiters'
      assert.deepEqual(await postgres.run(left), [])
    })
  })
})
