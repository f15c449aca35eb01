import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sessionLockContract } from '../../../testing/src/session-lock.ts'
import { memoryLock } from './lock.ts'

sessionLockContract('memoryLock', async () => ({ lock: memoryLock() }))

describe('memoryLock', () => {
  it('keeps nothing of a session that is idle', async () => {
    const lock = memoryLock()
    const leases = await Promise.all(Array.from({ length: 1000 }, async (_, i) => lock.acquire(`s${i}`)))
    const waiting = lock.acquire('s0', { deadlineMs: 60_000 })
    const givenUp = assert.rejects(lock.acquire('s0', { deadlineMs: 1 }), { code: 'lock_timeout' })
    assert.equal(lock.size, 1000)
    await givenUp
    for (const lease of leases) void lease.release()
    assert.equal(lock.size, 1)
    void (await waiting).release()
    assert.equal(lock.size, 0)
  })

  it('has no end of a wait that is given none', async () => {
    const lock = memoryLock()
    const held = await lock.acquire('s')
    const next = lock.acquire('s', { deadlineMs: Number.POSITIVE_INFINITY })
    void held.release()
    void (await next).release()
    assert.equal(lock.size, 0)
  })
})
