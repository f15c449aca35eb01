import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { until } from '../../../../tests/support/gateway.ts'
import { ownPostgres, ownRedis } from '../../../../tests/support/own-stores.ts'
import { openEngines } from './engines.ts'

const USE = [{ key: 'a', max: 1, windowMs: 60_000 }]

withBinaries(['postgres', 'initdb', 'redis-server'], (paths) => {
  describe('openEngines', () => {
    const postgres = ownPostgres(paths)
    const redis = ownRedis(paths['redis-server'])
    const connections = async () =>
      Number(
        (await postgres.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toolgate'"))[0]?.['count'],
      )

    it('counts in Postgres where there is no Redis, and says nothing of its limits', async (t) => {
      await postgres.empty()
      const engines = await openEngines({ postgres: postgres.url }, undefined, () => {})
      t.after(() => engines.close())
      assert.equal(engines.limits, undefined)
      assert.deepEqual(
        [(await engines.counters.take(USE)).allowed, (await engines.counters.take(USE)).allowed],
        [true, false],
      )
    })

    it('begins to count in a Redis that is new, refuses once it has lost its counts, and goes on when a person says so', async (t) => {
      await postgres.empty()
      await redis.run('FLUSHALL')
      const open = () => openEngines({ postgres: postgres.url, redis: redis.url }, undefined, () => {})
      const engines = await open()
      t.after(() => engines.close())
      await until(async () => (await engines.limits?.problem()) === undefined)
      await redis.run('FLUSHALL')
      await until(async () => (await engines.limits?.problem()) === 'Redis has lost its counts')
      const late = await open()
      t.after(() => late.close())
      await until(async () => (await late.limits?.problem()) === 'Redis has lost its counts')
      await assert.rejects(async () => late.counters.take(USE), { code: 'state_unavailable' })
      await late.limits?.reopen()
      await until(async () => (await engines.limits?.problem()) === undefined)
      redis.server.child.kill('SIGSTOP')
      await until(async () => (await engines.limits?.problem()) === 'Redis does not answer')
      redis.server.child.kill('SIGCONT')
      await until(async () => (await engines.limits?.problem()) === undefined)
    })

    it('begins to count in a Redis that takes longer at the start than a call waits', async (t) => {
      await postgres.empty()
      await redis.run('FLUSHALL')
      await redis.run('CLIENT', 'PAUSE', '400', 'WRITE')
      const engines = await openEngines({ postgres: postgres.url, redis: redis.url }, undefined, () => {})
      t.after(() => engines.close())
      await until(async () => (await engines.limits?.problem()) === undefined)
      assert.equal((await engines.counters.take(USE)).allowed, true)
    })

    it('names the key of the file that has a problem, and leaves nothing open', async () => {
      await postgres.empty()
      await assert.rejects(
        openEngines({ postgres: 'mysql://a' }, undefined, () => {}),
        { path: 'stores.postgres' },
      )
      await assert.rejects(
        openEngines({ postgres: postgres.url, redis: 'http://a' }, undefined, () => {}),
        {
          path: 'stores.redis',
        },
      )
      await until(async () => (await connections()) === 0)
    })
  })
})
