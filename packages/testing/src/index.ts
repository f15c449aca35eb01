// `@toolgate/testing`: the suites that every store runs, decisions as data, and a manual clock.

export { approvalStoreContract } from './approval-store.ts'
export { auditSinkContract, type AuditUnderTest } from './audit-sink.ts'
export { type DecisionCase, decisionCases } from './cases.ts'
export { type PeopleUnderTest, personStoreContract } from './person-store.ts'
export { clauseCountStoreContract, type ClauseCountsUnderTest } from './clause-count-store.ts'
export { counterStoreContract } from './counter-store.ts'
export { auditEntry } from './entries.ts'
export { grantStoreContract, type GrantsUnderTest } from './grant-store.ts'
export { type HistoriesUnderTest, historyStoreContract } from './history-store.ts'
export { manualClock, type ManualClock } from './manual-clock.ts'
export { type LockUnderTest, sessionLockContract } from './session-lock.ts'
export { stateStoreContract, type StateUnderTest } from './state-store.ts'
