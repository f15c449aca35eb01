import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { systemClock } from '@toolgate/core/stores'
import {
  approvalStoreContract,
  auditSinkContract,
  clauseCountStoreContract,
  grantStoreContract,
  personStoreContract,
  historyStoreContract,
  sessionLockContract,
  stateStoreContract,
} from '@toolgate/testing'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('openPostgresStores', () => {
    const postgres = ownPostgres(paths)

    approvalStoreContract('openPostgresStores', async (t) => {
      await postgres.clear()
      return (await postgres.open(t)).approvals
    })

    grantStoreContract('openPostgresStores', async (t) => {
      await postgres.clear()
      return { store: (await postgres.open(t)).grants, beside: async () => (await postgres.open(t)).grants }
    })

    auditSinkContract('openPostgresStores', async (t) => {
      await postgres.clear()
      const { openAudit } = await postgres.open(t)
      const open = () => openAudit({ replica: 'a', inputKey: randomBytes(32) })
      return { sink: await open(), reopen: open }
    })

    auditSinkContract('openPostgresStores, on a disk first', async (t) => {
      await postgres.clear()
      const { openAudit } = await postgres.open(t)
      const disk = scratchFolder(t)
      const open = () => openAudit({ replica: 'a', inputKey: randomBytes(32), disk })
      return { sink: await open(), reopen: open }
    })

    historyStoreContract('openPostgresStores', async (t, histories) => {
      await postgres.clear()
      const [{ histories: store }, other] = [
        await postgres.open(t, { histories }),
        await postgres.open(t, { histories }),
      ]
      return { store, beside: async () => other.histories }
    })

    clauseCountStoreContract('openPostgresStores', async (t, { clock }) => {
      await postgres.clear()
      const options = { clock: { ...systemClock, wallMs: () => clock.wallMs() } }
      const open = async () => (await postgres.open(t, options)).clauses
      return { store: await open(), beside: open }
    })

    personStoreContract('openPostgresStores', async (t, { max }) => {
      await postgres.clear()
      const open = async () => (await postgres.open(t, { people: { max } })).people
      return { store: await open(), beside: open }
    })

    it('add a batch once, however often it is sent', async (t) => {
      await postgres.clear()
      const { clauses } = await postgres.open(t)
      const counts = [{ id: 'a', hits: 2, lastHitAt: 5, countedSince: 1 }]
      for (const number of [1, 1, 2, 1, 2]) await clauses.add(counts, { writer: 'one', number })
      await clauses.add(counts, { writer: 'two', number: 1 })
      assert.deepEqual(await clauses.read(['a']), [{ ...counts[0], hits: 6 }])
    })

    sessionLockContract('openPostgresStores', async (t) => {
      await postgres.clear()
      const [{ lock }, other] = [await postgres.open(t), await postgres.open(t)]
      return { lock, beside: async () => other.lock }
    })

    stateStoreContract('openPostgresStores', async (t, { clock }) => {
      await postgres.clear()
      const options = { clock: { ...systemClock, wallMs: () => clock.wallMs() } }
      const [{ state }, other] = [await postgres.open(t, options), await postgres.open(t, options)]
      return { store: state, beside: async () => other.state }
    })
  })
})
