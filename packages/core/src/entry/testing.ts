// `@toolgate/core/testing`: the suites that every store runs, decisions as data, and a clock that stands still.

export { approvalStoreContract } from '../testing/approval-store.ts'
export { auditSinkContract, type AuditUnderTest } from '../testing/audit-sink.ts'
export { type DecisionCase, decisionCases } from '../testing/cases.ts'
export { clauseCountStoreContract, type ClauseCountsUnderTest } from '../testing/clause-count-store.ts'
export { counterStoreContract } from '../testing/counter-store.ts'
export { auditEntry } from '../testing/entries.ts'
export { type HistoriesUnderTest, historyStoreContract } from '../testing/history-store.ts'
export { manualClock, type ManualClock } from '../testing/manual-clock.ts'
export { type LockUnderTest, sessionLockContract } from '../testing/session-lock.ts'
export { stateStoreContract, type StateUnderTest } from '../testing/state-store.ts'
