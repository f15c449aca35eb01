import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext } from 'node:test'
import {
  approvalStoreContract,
  counterStoreContract,
  sessionLockContract,
  stateStoreContract,
} from '@toolgate/core/testing'
import { machineClock } from './machine-time.ts'
import { openSqliteStores, type SqliteStores, type SqliteStoresOptions } from './open-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

function open(t: TestContext, options: Partial<SqliteStoresOptions> = {}): SqliteStores {
  const stores = openSqliteStores({ path: join(scratchFolder(t), 'state.db'), ...options })
  t.after(() => stores.close())
  return stores
}

approvalStoreContract('openSqliteStores', (t) => open(t).approvals)

sessionLockContract('openSqliteStores', (t) => {
  const path = join(scratchFolder(t), 'state.db')
  return { lock: open(t, { path }).lock, beside: () => open(t, { path }).lock }
})

stateStoreContract('openSqliteStores', (t, { clock }) => {
  const path = join(scratchFolder(t), 'state.db')
  const options = { path, clock: { ...machineClock, ...clock } }
  return { store: open(t, options).state, beside: () => open(t, options).state }
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
