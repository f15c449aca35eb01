import { join } from 'node:path'
import { clauseCountStoreContract } from '@toolgate/testing'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { machineClock } from './machine.ts'

clauseCountStoreContract('openSqliteStores', async (t, { clock }) => {
  const path = join(scratchFolder(t), 'state.db')
  const open = () => openScratchStores(t, { path, clock: { ...machineClock, wallMs: () => clock.wallMs() } }).clauses
  return { store: open(), beside: async () => open() }
})
