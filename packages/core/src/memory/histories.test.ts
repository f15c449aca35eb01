import { historyStoreContract } from '../testing/history-store.ts'
import { memoryHistories } from './histories.ts'

historyStoreContract('memoryHistories', (_t, limits) => ({ store: memoryHistories(limits) }))
