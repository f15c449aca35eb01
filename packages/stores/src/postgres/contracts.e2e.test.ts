import { describe } from 'node:test'
import { systemClock } from '@toolgate/core/stores'
import { approvalStoreContract, stateStoreContract } from '@toolgate/core/testing'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('openPostgresStores', () => {
    const postgres = ownPostgres(paths)

    approvalStoreContract('openPostgresStores', async (t) => {
      await postgres.empty()
      return (await postgres.open(t)).approvals
    })

    stateStoreContract('openPostgresStores', async (t, { clock }) => {
      await postgres.empty()
      const options = { clock: { ...systemClock, wallMs: () => clock.wallMs() } }
      const [{ state }, other] = [await postgres.open(t, options), await postgres.open(t, options)]
      return { store: state, beside: () => other.state }
    })
  })
})
