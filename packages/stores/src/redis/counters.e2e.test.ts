import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { counterStoreContract, manualClock } from '@toolgate/testing'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownRedis } from '../../../../tests/support/own-stores.ts'

const USES = [{ key: 'a', max: 3, windowMs: 3_600_000 }]
const UNAVAILABLE = { code: 'state_unavailable' }

withBinaries(['redis-server'], ({ 'redis-server': server }) => {
  describe('openRedisCounters', () => {
    const redis = ownRedis(server)

    counterStoreContract('openRedisCounters', async ({ clock }) =>
      redis.open({ after: (work) => after(async () => void (await work())) }, { clock }),
    )

    it('gives a take back once, also if another came at the same time', async (t) => {
      const counters = await redis.open(t, { clock: manualClock() })
      const first = await counters.take(USES)
      await counters.take(USES)
      for (let i = 0; i < 3; i++) await counters.giveBack(USES, first)
      assert.equal((await counters.peek(USES)).remaining, 1)
    })

    it('counts by the server’s clock, and forgets keys whose windows are over', async (t) => {
      const counters = await redis.open(t, { prefix: 'brief' })
      const brief = [{ key: 'a', max: 1, windowMs: 200 }]
      const { atMs = 0 } = await counters.take(brief)
      const [seconds] = (await redis.run('TIME')) as readonly string[]
      assert.ok(Math.abs(atMs / 1000 - Number(seconds)) < 60)
      while (!(await counters.take(brief)).allowed) await sleep(20)
      while (((await redis.run('KEYS', 'brief:*')) as readonly string[]).length > 1) await sleep(20)
      assert.deepEqual(await redis.run('KEYS', 'brief:*'), ['brief:meta'])
    })

    it('frees nothing when the clock goes back', async (t) => {
      const clock = manualClock()
      const counters = await redis.open(t, { clock })
      for (let i = 0; i < 3; i++) await counters.take(USES)
      const other = [{ key: 'b', max: 1, windowMs: 1000 }]
      clock.advance(-3_600_000)
      await counters.take(other)
      clock.advance(3_600_000)
      assert.equal((await counters.take(USES)).allowed, false)
      assert.equal((await counters.take(other)).allowed, false, 'it was taken now, and not an hour ago')
    })

    it('runs on when the server has forgotten the script', async (t) => {
      const counters = await redis.open(t)
      await redis.run('SCRIPT', 'FLUSH')
      assert.equal((await counters.take(USES)).allowed, true)
    })

    it('refuses all limited calls while Redis has no epoch, until a person opens them', async (t) => {
      const counters = await redis.open(t, { prefix: 'flushed' })
      assert.equal((await counters.take(USES)).allowed, true)
      await redis.run('DEL', 'flushed:meta')
      await assert.rejects(async () => counters.take(USES), { ...UNAVAILABLE, detail: /Open the limits with reopen/ })
      await assert.rejects(async () => counters.peek(USES), UNAVAILABLE)
      assert.equal(await counters.readEpoch(), undefined)
      const epochs = await Promise.all([counters.reopen(), counters.reopen()])
      assert.equal(epochs[0], epochs[1])
      assert.equal(await counters.readEpoch(), epochs[0])
      assert.equal((await counters.take(USES)).allowed, true)
    })

    it('opens by itself after the time that was stated, counted from the first call that was refused', async (t) => {
      const clock = manualClock()
      const counters = await redis.open(t, { clock, reopenAfterMs: 60_000 }, 'lost')
      await assert.rejects(async () => counters.take(USES), { detail: /open in 60 s/ })
      clock.advance(59_999)
      await assert.rejects(async () => counters.take(USES), { detail: /open in 1 s/ })
      clock.advance(1)
      await assert.rejects(async () => counters.peek(USES), UNAVAILABLE)
      assert.equal((await counters.take(USES)).allowed, true)
      assert.equal((await counters.peek(USES)).allowed, true)
    })
  })
})
