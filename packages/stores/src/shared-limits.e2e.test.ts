import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { withBinaries } from '../../../tests/support/binaries.ts'
import { ownPostgres, ownRedis } from '../../../tests/support/own-stores.ts'
import { compete } from './testing/compete.ts'

withBinaries(['redis-server', 'postgres', 'initdb'], ({ 'redis-server': server, ...paths }) => {
  describe('8 processes at once', () => {
    const redis = ownRedis(server)
    const postgres = ownPostgres(paths)

    it('let exactly as many through as the limit in Redis allows', async (t) => {
      await redis.open(t, { prefix: 'toolgate' })
      const shared = { engine: 'redis', url: redis.url, processes: 8, tries: 3000 } as const
      assert.equal(await compete({ ...shared, max: 7777 }), 7777)
      assert.equal(await compete({ ...shared, max: 8888 }), 1111)
    })

    it('let exactly as many through as the limit in Postgres allows', async (t) => {
      await postgres.open(t)
      const shared = { engine: 'postgres', url: postgres.url, processes: 8, tries: 150 } as const
      assert.equal(await compete({ ...shared, max: 777 }), 777)
      assert.equal(await compete({ ...shared, max: 888 }), 111)
    })
  })

  describe('two connections to Postgres', () => {
    const postgres = ownPostgres(paths)

    it('spend one approval once, whatever else is asked of it at the same time', async (t) => {
      const [one, other] = [await postgres.open(t), await postgres.open(t)]
      const step = fc.constantFrom('consume', 'consume', 'revoke', 'giveBack', 'get')
      let count = 0
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { minLength: 2, maxLength: 12 }), async (steps) => {
          const inputHash = String(count++)
          const binding = { tenant: 't', user: inputHash, tool: 't', definitionHash: 'd', inputHash, run: undefined }
          const { id } = await one.approvals.request(binding, {}, Date.now())
          await other.approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })
          const done = await Promise.allSettled(
            steps.map(async ([kind, first], i) => {
              const { approvals } = first ? one : other
              if (kind === 'consume') return approvals.consume(id, Date.now(), `spend-${i}`)
              // Of a spend that never was: it gives nothing back.
              if (kind === 'giveBack') return approvals.giveBack(id, `other-${i}`)
              if (kind === 'get') return (await approvals.get(id, Date.now()))?.id
              return (await approvals.decide(id, { decision: 'revoke', by: 'ada', atMs: Date.now() })).status
            }),
          )
          const spent = done.filter((each) => each.status === 'fulfilled' && each.value === true).length
          const revoked = done.filter((each) => each.status === 'fulfilled' && each.value === 'revoked').length
          const tried = steps.some(([kind]) => kind === 'consume' || kind === 'revoke')
          assert.equal(spent + revoked, tried ? 1 : 0)
        }),
        { numRuns: 60 },
      )
    })
  })
})
