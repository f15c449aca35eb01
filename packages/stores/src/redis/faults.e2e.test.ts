import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownRedis } from '../../../../tests/support/own-stores.ts'
import type { RedisCounters } from './counters.ts'

const UNAVAILABLE = { code: 'state_unavailable' }
const use = (max: number) => [{ key: 'a', max, windowMs: 3_600_000 }]

/** Takes until Redis answers again. */
async function takeAgain(counters: RedisCounters, max: number) {
  for (;;) {
    try {
      return await counters.take(use(max))
    } catch {
      await sleep(10)
    }
  }
}

/** Counts how many of so many takes at once are allowed. The others are refused or unknown. */
async function takeMany(counters: RedisCounters, times: number, max: number) {
  const answers = await Promise.allSettled(Array.from({ length: times }, async () => counters.take(use(max))))
  return {
    allowed: answers.filter((answer) => answer.status === 'fulfilled' && answer.value.allowed).length,
    unknown: answers.filter(({ status }) => status === 'rejected').length,
  }
}

withBinaries(['redis-server'], ({ 'redis-server': server }) => {
  describe('openRedisCounters with a Redis that keeps a file', () => {
    const redis = ownRedis(server, ['--appendonly', 'yes', '--appendfsync', 'always'])

    it('refuses while Redis is paused, holds nothing back for later, and goes on with it', async (t) => {
      const counters = await redis.open(t, { silenceMs: 30 })
      await takeAgain(counters, 1000)
      redis.server.child.kill('SIGSTOP')
      try {
        await assert.rejects(async () => counters.take(use(1000)), UNAVAILABLE)
        await assert.rejects(async () => counters.take(use(1000)), { detail: /no answer for 30 ms/ })
        assert.equal((await takeMany(counters, 50_000, 1000)).unknown, 50_000)
        // Longer than a connection may take: it is tried again.
        await sleep(1200)
        await assert.rejects(async () => counters.take(use(1000)), UNAVAILABLE)
      } finally {
        redis.server.child.kill('SIGCONT')
      }
      const { allowed, remaining } = await takeAgain(counters, 1000)
      // Those that were under way may count or not; those that were refused at once do not.
      assert.ok(allowed && remaining >= 900, `${remaining} are left`)
    })

    it('is given its time again when the process itself, or the whole machine, stood still', async (t) => {
      const counters = await redis.open(t, { silenceMs: 500 })
      await takeAgain(counters, 100_000)
      redis.server.child.kill('SIGSTOP')
      const taking = counters.take(use(100_000))
      await new Promise(setImmediate)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 800)
      redis.server.child.kill('SIGCONT')
      assert.equal((await taking).allowed, true)
    })

    it('lets no more through than the limit when Redis is killed amid takes, and goes on after its restart', async (t) => {
      const counters = await redis.open(t)
      const before = await takeMany(counters, 20, 100)
      const amid = takeMany(counters, 2000, 100)
      const ended = once(redis.server.child, 'exit')
      redis.server.child.kill('SIGKILL')
      await ended
      const during = await amid
      await assert.rejects(async () => counters.take(use(100)), UNAVAILABLE)
      await redis.server.restart()
      const after = await takeAgain(counters, 100)
      const last = await takeMany(counters, 2000, 100)
      const allowed = before.allowed + during.allowed + Number(after.allowed) + last.allowed
      assert.ok(allowed <= 100, `${allowed} were allowed`)
      assert.ok(allowed + during.unknown >= 100)
    })

    it('goes on when its connection is cut, and no take is sent twice', async (t) => {
      const counters = await redis.open(t)
      const amid = takeMany(counters, 500, 1_000_000)
      await redis.run('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      const { allowed, unknown } = await amid
      const { remaining } = await takeAgain(counters, 1_000_000)
      const counted = 1_000_000 - remaining - 1
      assert.ok(counted >= allowed && counted <= allowed + unknown, `${counted}, ${allowed}, ${unknown}`)
    })

    it('refuses a server that has become a replica, and goes on when it is none', async (t) => {
      const counters = await redis.open(t)
      await redis.run('REPLICAOF', '127.0.0.1', '1')
      await assert.rejects(async () => counters.take(use(5)), { detail: /READONLY/ })
      await redis.run('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      for (;;) {
        const error = await Promise.resolve(counters.take(use(5))).catch((reason: { detail?: string }) => reason)
        if ('detail' in error && /read-only replica/.test(error.detail ?? '')) break
        await sleep(10)
      }
      await redis.run('REPLICAOF', 'NO', 'ONE')
      assert.equal((await takeAgain(counters, 5)).allowed, true)
    })
  })

  describe('openRedisCounters with a Redis that keeps no file', () => {
    const redis = ownRedis(server)

    it('refuses all limited calls after a restart, until a person opens them', async (t) => {
      const counters = await redis.open(t)
      await counters.take(use(1))
      const ended = once(redis.server.child, 'exit')
      redis.server.child.kill('SIGKILL')
      await ended
      await redis.server.restart()
      for (;;) {
        const error = await Promise.resolve(counters.take(use(1))).catch((reason: { detail?: string }) => reason)
        if ('detail' in error && /reopen/.test(error.detail ?? '')) break
        assert.ok('detail' in error, 'a call was let through')
        await sleep(10)
      }
      await counters.reopen()
      assert.equal((await counters.take(use(1))).allowed, true)
    })
  })
})
