import assert from 'node:assert/strict'
import { globSync, statSync, truncateSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownRedis } from '../../../../tests/support/own-stores.ts'

const MAX = 200
const USE = [{ key: 'a', max: MAX, windowMs: 3_600_000 }]

withBinaries(['redis-server'], ({ 'redis-server': server }) => {
  describe('a Redis whose machine has lost its last second', () => {
    const redis = ownRedis(server, ['--appendonly', 'yes', '--appendfsync', 'everysec'])

    it('grants again what that second took, and no more', async (t) => {
      const counters = await redis.open(t)
      const take = async (times: number) => {
        let allowed = 0
        for (let i = 0; i < times; i++) if ((await counters.take(USE)).allowed) allowed++
        return allowed
      }
      /** A busy disk makes Redis keep what it has still to write. */
      const written = async () => {
        for (;;) {
          const info = String(await redis.run('INFO', 'persistence'))
          if (/aof_buffer_length:0\b/.test(info) && /aof_pending_bio_fsync:0\b/.test(info)) return
          await sleep(20)
        }
      }
      assert.equal(await take(100), 100)
      await written()
      const [file] = globSync(path.join(redis.server.folder, 'appendonlydir/*.incr.aof'))
      assert.ok(file)
      const synced = statSync(file).size
      const lost = await take(60)
      await written()
      redis.server.child.kill('SIGKILL')
      await redis.server.end()
      // What a disk may hold after the power is gone: all that was synced, and a part of the next command.
      assert.ok(statSync(file).size > synced + 7)
      truncateSync(file, synced + 7)
      await redis.server.restart()
      const again = await redis.open(t, { prefix: 'p0' })
      let granted = 0
      while ((await again.take(USE)).allowed) granted++
      t.diagnostic(`${lost} uses were lost: ${100 + lost + granted} of ${MAX} allowed`)
      assert.equal(100 + lost + granted, MAX + lost)
    })
  })
})
