import { historyStoreContract } from '@toolgate/core/testing'
import { join } from 'node:path'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

historyStoreContract('openSqliteStores', (t, histories) => {
  const path = join(scratchFolder(t), 'state.db')
  const open = () => openScratchStores(t, { path, histories }).histories
  return { store: open(), beside: open }
})
