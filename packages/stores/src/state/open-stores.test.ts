import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it } from 'node:test'
import {
  approvalStoreContract,
  counterStoreContract,
  grantStoreContract,
  sessionLockContract,
  stateStoreContract,
} from '@toolgate/testing'
import { machineClock } from './machine.ts'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { openSqliteStores, type SqliteStores } from './open-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

approvalStoreContract('openSqliteStores', async (t) => openScratchStores(t).approvals)

grantStoreContract('openSqliteStores', async (t) => {
  const path = join(scratchFolder(t), 'state.db')
  return { store: openScratchStores(t, { path }).grants, beside: async () => openScratchStores(t, { path }).grants }
})

sessionLockContract('openSqliteStores', async (t) => {
  const path = join(scratchFolder(t), 'state.db')
  return { lock: openScratchStores(t, { path }).lock, beside: async () => openScratchStores(t, { path }).lock }
})

stateStoreContract('openSqliteStores', async (t, { clock }) => {
  const path = join(scratchFolder(t), 'state.db')
  const options = { path, clock: { ...machineClock, ...clock } }
  return { store: openScratchStores(t, options).state, beside: async () => openScratchStores(t, options).state }
})

describe('the counters of openSqliteStores', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-stores-'))
  const opened: SqliteStores[] = []
  after(() => {
    for (const stores of opened) stores.close()
    rmSync(folder, { recursive: true, force: true })
  })
  counterStoreContract('openSqliteStores', async ({ clock }) => {
    const stores = openSqliteStores({
      path: join(folder, `${opened.length}.db`),
      clock: { ...machineClock, monotonicMs: () => clock.monotonicMs() },
    })
    opened.push(stores)
    return stores.counters
  })
})

describe('a file of version 1', () => {
  it('keeps its approvals, and those that come have a chat', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const first = openSqliteStores({ path })
    const binding = { tenant: undefined, user: 'vera', definitionHash: 'd', inputHash: 'i', run: undefined }
    const { id } = await first.approvals.request({ ...binding, tool: 'old' }, {}, 1000)
    first.close()
    const db = new DatabaseSync(path)
    db.exec(
      'ALTER TABLE approvals DROP COLUMN chat; ALTER TABLE approvals DROP COLUMN spend; ALTER TABLE approvals DROP COLUMN votes',
    )
    db.exec(
      'DROP TABLE histories; DROP TABLE history_items; DROP TABLE history_sums; DROP TABLE clause_counts; DROP TABLE grants; DROP TABLE people; DROP TABLE grant_uses; PRAGMA user_version = 1',
    )
    db.close()
    const { approvals } = openScratchStores(t, { path })
    assert.equal((await approvals.get(id, 1000))?.tool, 'old')
    const asked = await approvals.request({ ...binding, tool: 'new' }, {}, 1000, { chat: 'c1' })
    assert.deepEqual(
      (await approvals.list({ chat: 'c1' }, 1000)).map((one) => one.id),
      [asked.id],
    )
  })
})
