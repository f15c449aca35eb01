import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { manualClock } from '@toolgate/testing'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

describe('the lock of openSqliteStores', () => {
  it('is kept by a process that lives for longer than a lease does', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const clock = manualClock()
    const options = { path, clock, lock: { leaseMs: 90 } }
    const [first, second] = [openScratchStores(t, options), openScratchStores(t, options)]
    const lease = await first.lock.acquire('s')
    let isIn = false
    const next = (async () => {
      const other = await second.lock.acquire('s')
      isIn = true
      return other
    })()
    const { renewed, asked } = watchLeases(t, path)
    for (let i = 0; i < 8; i++) {
      clock.advance(50)
      await renewed(clock.monotonicMs() + 90)
      await asked(clock.monotonicMs())
    }
    assert.equal(isIn, false)
    await lease.release()
    await (await next).release()
  })

  it('is not ended for its holder by one whose lease was over', async (t) => {
    const clock = manualClock()
    const path = join(scratchFolder(t), 'state.db')
    const [first, second, third] = [0, 1, 2].map(() => openScratchStores(t, { path, clock }))
    const stalled = await first?.lock.acquire('s')
    clock.advance(15_000)
    const holder = await second?.lock.acquire('s')
    assert.ok((holder?.fencingToken ?? 0) > (stalled?.fencingToken ?? 0))
    await stalled?.release()
    await assert.rejects(async () => third?.lock.acquire('s', { deadlineMs: 60 }), { code: 'lock_timeout' })
    await holder?.release()
    await (await third?.lock.acquire('s'))?.release()
  })

  it('aborts a turn that was lost, and keeps its late writes out', async (t) => {
    const clock = manualClock()
    const path = join(scratchFolder(t), 'state.db')
    const [first, second] = [0, 1].map(() => openScratchStores(t, { path, clock, lock: { leaseMs: 90 } }))
    const stalled = await first?.lock.acquire('s')
    const fence = { session: 's', fencingToken: stalled?.fencingToken ?? 0 }
    await first?.state.set('a', 1, { fence })
    clock.advance(90)
    const holder = await second?.lock.acquire('s')
    await assert.rejects(async () => first?.state.set('a', 2, { fence }), { code: 'lock_lost' })
    await assert.rejects(async () => first?.state.add('b', 2, { fence }), { code: 'lock_lost' })
    assert.deepEqual(await second?.state.list(''), [{ key: 'a', value: 1 }])
    while (stalled?.lost?.aborted === false) await sleep(5)
    assert.equal(holder?.lost?.aborted, false)
    await holder?.release()
  })

  it('lets another process in before one that asks again and again', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const clock = manualClock()
    const [greedy, other] = [openScratchStores(t, { path, clock }), openScratchStores(t, { path, clock })]
    const held = await greedy.lock.acquire('s')
    const order: string[] = []
    const waiting = (async () => {
      const lease = await other.lock.acquire('s')
      order.push('other')
      await lease.release()
    })()
    await watchLeases(t, path).asked(clock.monotonicMs())
    const again = (async () => {
      for (let i = 0; i < 3; i++) {
        const lease = await greedy.lock.acquire('s')
        order.push('greedy')
        await lease.release()
      }
    })()
    await held.release()
    await Promise.all([waiting, again])
    assert.equal(order[0], 'other')
  })

  it('keeps nothing of a session that is idle, nor of waits that were given up', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const [first, second] = [openScratchStores(t, { path }), openScratchStores(t, { path })]
    const lease = await first.lock.acquire('s')
    await assert.rejects(second.lock.acquire('s', { deadlineMs: 1 }), { code: 'lock_timeout' })
    await assert.rejects(second.lock.acquire('s', { signal: AbortSignal.timeout(30) }), { name: 'TimeoutError' })
    await lease.release()
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    assert.deepEqual(db.prepare('SELECT token FROM leases UNION ALL SELECT ticket FROM lease_waiters').all(), [])
  })

  it('ends its turns and its waits when the stores are closed', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const [first, second] = [openScratchStores(t, { path }), openScratchStores(t, { path })]
    await first.lock.acquire('mine')
    const theirs = await second.lock.acquire('theirs')
    const waiting = assert.rejects(first.lock.acquire('theirs'), { code: 'state_unavailable' })
    await watchLeases(t, path).asked(0)
    first.close()
    await waiting
    await (await second.lock.acquire('mine', { deadlineMs: 0 })).release()
    await theirs.release()
  })

  it('is closed while another process writes, and its turns end by themselves', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const clock = manualClock()
    const { lock, close } = openScratchStores(t, { path, clock })
    await lock.acquire('s')
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    close()
    await sleep(30)
    other.exec('COMMIT')
    clock.advance(15_000)
    const later = openScratchStores(t, { path, clock })
    await (await later.lock.acquire('s', { deadlineMs: 0 })).release()
  })

  it('forgets leases of an earlier boot', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { lock } = openScratchStores(t, { path, bootId: 'a' })
    await lock.acquire('s')
    const after = openScratchStores(t, { path, bootId: 'b' })
    await (await after.lock.acquire('s', { deadlineMs: 0 })).release()
  })
})

/** Waits for what the processes have written of their turns. */
function watchLeases(t: TestContext, path: string) {
  const db = new DatabaseSync(path, { readOnly: true })
  t.after(() => db.close())
  const until = async (sql: string, ms: number): Promise<void> => {
    const found = db.prepare(sql)
    while (!found.get(ms)) await sleep(5)
  }
  return {
    /** Somebody's turn now lasts until a time. */
    renewed: async (ms: number) => until('SELECT 1 FROM leases WHERE expires_at >= ?', ms),
    /** Somebody who waits has asked after a time. */
    asked: async (ms: number) => until('SELECT 1 FROM lease_waiters WHERE expires_at > ?', ms),
  }
}
