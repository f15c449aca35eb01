import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCanceller } from '@toolgate/values'
import type { Lease, SessionLock } from '@toolgate/core/stores'

export interface LockUnderTest {
  readonly lock: SessionLock
  /** Returns another handle on the same sessions, as in another process. Absent if there can be no other process. */
  readonly beside?: () => Promise<SessionLock>
}

/**
 * Defines the tests that every session lock passes: one turn at a time, in the order of requests.
 * @example
 * sessionLockContract('memoryLock', async () => ({ lock: memoryLock() }))
 */
export function sessionLockContract(name: string, make: (t: TestContext) => Promise<LockUnderTest>): void {
  describe(`${name} (session lock contract)`, () => {
    const open = async (t: TestContext): Promise<SessionLock> => (await make(t)).lock

    it('lets one into a session, and the next when that one is done', async (t) => {
      const lock = await open(t)
      const first = await lock.acquire('s')
      const next = follow(lock.acquire('s'))
      await settle()
      assert.equal(next.isIn, false)
      await first.release()
      await (await next.lease).release()
    })

    it('gives turns in the order of asking', async (t) => {
      const lock = await open(t)
      const first = await lock.acquire('s')
      const order: number[] = []
      const turns = Array.from({ length: 10 }, async (_, i) => {
        const lease = await lock.acquire('s')
        order.push(i)
        await lease.release()
      })
      await first.release()
      await Promise.all(turns)
      assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    })

    it('lets different sessions in at once, whatever their names', async (t) => {
      const lock = await open(t)
      const names = ['a', 'A', 'a:b', '', ' ', '__proto__', 'constructor', '🙂', 'a\0', 'a\0b', 'a\uD800', 'a\uDBFF']
      const leases = await Promise.all(names.map(async (session) => lock.acquire(session)))
      await Promise.all(leases.map(async (lease) => lease.release()))
    })

    it('never lets two in at once when many ask', async (t) => {
      const { lock, beside } = await make(t)
      const handles = [lock, (await beside?.()) ?? lock]
      let inside = 0
      let most = 0
      await Promise.all(
        Array.from({ length: 30 }, async (_, i) => {
          const lease = await (handles[i % 2] as SessionLock).acquire('s')
          most = Math.max(most, ++inside)
          await sleep(i % 3)
          inside--
          await lease.release()
        }),
      )
      assert.equal(most, 1)
    })

    it('gives each lease of a session a greater fencing token than the ones before, idle times between them too', async (t) => {
      const { lock, beside } = await make(t)
      const handles = [lock, (await beside?.()) ?? lock]
      const tokens: number[] = []
      for (let i = 0; i < 6; i++) {
        const lease = await (handles[i % 2] as SessionLock).acquire('s')
        tokens.push(lease.fencingToken)
        await lease.release()
      }
      assert.ok(tokens.every((token, i) => Number.isSafeInteger(token) && (i === 0 || token > (tokens[i - 1] ?? 0))))
    })

    it('ends a turn once, however often it is released', async (t) => {
      const lock = await open(t)
      const first = await lock.acquire('s')
      const second = follow(lock.acquire('s'))
      const third = follow(lock.acquire('s'))
      await first.release()
      await first.release()
      await second.lease
      await first.release()
      await settle()
      assert.equal(third.isIn, false)
      await (await second.lease).release()
      await (await third.lease).release()
    })

    it('gives up with the reason when it is aborted while it waits, and the turn goes to the one behind', async (t) => {
      const lock = await open(t)
      for (const kind of ['AbortSignal', 'Cancelling'] as const) {
        const held = await lock.acquire('s')
        const { signal, abort } = abortable(kind)
        const quitter = assert.rejects(lock.acquire('s', { signal }), (reason) => reason === kind)
        const behind = follow(lock.acquire('s'))
        abort(kind)
        await quitter
        assert.equal(behind.isIn, false)
        await held.release()
        await (await behind.lease).release()
      }
    })

    it('takes no turn when it was aborted before', async (t) => {
      const lock = await open(t)
      await assert.rejects(lock.acquire('s', { signal: AbortSignal.abort('no') }), (reason) => reason === 'no')
      await (await lock.acquire('s')).release()
    })

    it('keeps its turn when it is aborted after it began', async (t) => {
      const lock = await open(t)
      const controller = new AbortController()
      const lease = await lock.acquire('s', { signal: controller.signal })
      controller.abort()
      const next = follow(lock.acquire('s'))
      await settle()
      assert.equal(next.isIn, false)
      await lease.release()
      await (await next.lease).release()
    })

    it('gives up when its turn does not come by its deadline, and the turn goes to the one behind', async (t) => {
      const lock = await open(t)
      const held = await lock.acquire('s')
      const quitter = assert.rejects(lock.acquire('s', { deadlineMs: 20 }), { code: 'lock_timeout' })
      const behind = follow(lock.acquire('s', { deadlineMs: 60_000 }))
      await quitter
      assert.equal(behind.isIn, false)
      await held.release()
      await (await behind.lease).release()
    })

    it('gets a free session whatever its deadline', async (t) => {
      const lock = await open(t)
      await (await lock.acquire('s', { deadlineMs: 0 })).release()
    })

    it('lets in the last when all before it have given up', async (t) => {
      const lock = await open(t)
      const held = await lock.acquire('s')
      const controller = new AbortController()
      const quitters = Array.from({ length: 5 }, async () => lock.acquire('s', { signal: controller.signal }))
      const last = follow(lock.acquire('s'))
      controller.abort()
      assert.ok((await Promise.allSettled(quitters)).every(({ status }) => status === 'rejected'))
      await held.release()
      await (await last.lease).release()
    })
  })
}

function follow(lease: Promise<Lease>): { readonly lease: Promise<Lease>; readonly isIn: boolean } {
  const followed = { lease, isIn: false }
  const mark = async (): Promise<void> => {
    await lease
    followed.isIn = true
  }
  // The code that awaits the lease sees its failure.
  mark().catch(() => {})
  return followed
}

/** Waits until a request that should wait would have obtained the lock, if the lock were broken. */
async function settle(): Promise<void> {
  await sleep(20)
}

function abortable(kind: 'AbortSignal' | 'Cancelling') {
  if (kind === 'Cancelling') {
    const canceller = createCanceller()
    return { signal: canceller, abort: (reason: unknown) => canceller.abort(reason) }
  }
  const controller = new AbortController()
  return { signal: controller.signal, abort: (reason: unknown) => controller.abort(reason) }
}
