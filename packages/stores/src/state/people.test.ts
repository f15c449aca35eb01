import { join } from 'node:path'
import { personStoreContract } from '@toolgate/testing'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

personStoreContract('openSqliteStores', async (t, { max }) => {
  const path = join(scratchFolder(t), 'state.db')
  const open = () => openScratchStores(t, { path, people: { max } }).people
  return { store: open(), beside: async () => open() }
})
