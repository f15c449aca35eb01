import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import {
  approvalStoreContract,
  counterStoreContract,
  sessionLockContract,
  stateStoreContract,
} from '@toolgate/core/testing'
import { machineClock } from './machine-time.ts'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { openSqliteStores, type SqliteStores } from './open-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

approvalStoreContract('openSqliteStores', (t) => openScratchStores(t).approvals)

sessionLockContract('openSqliteStores', (t) => {
  const path = join(scratchFolder(t), 'state.db')
  return { lock: openScratchStores(t, { path }).lock, beside: () => openScratchStores(t, { path }).lock }
})

stateStoreContract('openSqliteStores', (t, { clock }) => {
  const path = join(scratchFolder(t), 'state.db')
  const options = { path, clock: { ...machineClock, ...clock } }
  return { store: openScratchStores(t, options).state, beside: () => openScratchStores(t, options).state }
})

describe('the counters of openSqliteStores', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-stores-'))
  const opened: SqliteStores[] = []
  after(() => {
    for (const stores of opened) stores.close()
    rmSync(folder, { recursive: true, force: true })
  })
  counterStoreContract('openSqliteStores', ({ clock }) => {
    const stores = openSqliteStores({
      path: join(folder, `${opened.length}.db`),
      clock: { ...machineClock, monotonicMs: () => clock.monotonicMs() },
    })
    opened.push(stores)
    return stores.counters
  })
})
