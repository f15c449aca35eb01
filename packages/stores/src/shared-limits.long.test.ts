import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withBinaries } from '../../../tests/support/binaries.ts'
import { ownPostgres, ownRedis } from '../../../tests/support/own-stores.ts'
import { compete } from './testing/compete.ts'

withBinaries(['redis-server', 'postgres', 'initdb'], ({ 'redis-server': server, ...paths }) => {
  describe('8 processes for long', () => {
    const redis = ownRedis(server)
    const postgres = ownPostgres(paths)

    it('let exactly a million of 8,000,000 tries through in Redis', async (t) => {
      await redis.open(t, { prefix: 'toolgate' })
      const shared = { engine: 'redis', url: redis.url, processes: 8 } as const
      assert.equal(await compete({ ...shared, max: 1_000_000, tries: 1_000_000 }), 1_000_000)
    })

    it('let exactly 20,000 of 160,000 tries through in Postgres', async (t) => {
      await postgres.open(t)
      const shared = { engine: 'postgres', url: postgres.url, processes: 8 } as const
      assert.equal(await compete({ ...shared, max: 20_000, tries: 20_000 }), 20_000)
    })
  })
})
