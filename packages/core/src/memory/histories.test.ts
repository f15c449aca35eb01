import { historyStoreContract } from '../../../testing/src/history-store.ts'
import { memoryHistories } from './histories.ts'

historyStoreContract('memoryHistories', (_t, limits) => ({ store: memoryHistories(limits) }))
