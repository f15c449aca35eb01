import { historyStoreContract } from '../../../testing/src/history-store.ts'
import { memoryHistories } from './histories.ts'

historyStoreContract('memoryHistories', async (_t, limits) => ({ store: memoryHistories(limits) }))
