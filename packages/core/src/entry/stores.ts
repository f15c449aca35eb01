// `@toolgate/core/stores`: the interfaces of stores and clocks, the stores in memory, and helpers for authors of stores.

// Ports
export type {
  ApprovalAbout,
  ApprovalBinding,
  ApprovalDecision,
  ApprovalFilter,
  ApprovalStatus,
  ApprovalStore,
  ApprovalVerdict,
  ApproverRule,
  Clock,
  CounterStore,
  Fence,
  Lease,
  LimitAnswer,
  LimitUse,
  LockOptions,
  ReplicaLapse,
  ReplicaLease,
  SessionLock,
  StateChange,
  StateEntry,
  StateOptions,
  StateStore,
} from '../ports/ports.ts'
export type {
  Grant,
  GrantCovers,
  GrantedField,
  GrantFilter,
  GrantRequest,
  GrantRevocation,
  GrantRules,
  GrantStatus,
  GrantStore,
  NamedField,
  NewGrant,
} from '../ports/grants.ts'
export type { ClauseBatch, ClauseCount, ClauseCountStore } from '../ports/clause-counts.ts'
export { MAX_PEOPLE, type PeopleAnswer, type PersonDoor, type PersonStore, type SeenPerson } from '../ports/people.ts'
export type {
  HistoryAddition,
  HistoryAnswer,
  HistoryItem,
  HistoryItemKind,
  HistoryMark,
  HistoryOpening,
  HistoryPart,
  HistoryStore,
} from '../ports/history.ts'

// In memory
export { memoryApprovals } from '../memory/approvals.ts'
export { memoryGrants } from '../memory/grants.ts'
export { systemClock } from '../memory/clock.ts'
export { memoryCounters, type MemoryCounters } from '../memory/counters.ts'
export { memoryHistories, type MemoryHistories } from '../memory/histories.ts'
export { memoryLock, type MemoryLock } from '../memory/lock.ts'
export { joinedPerson, memoryPeople, toPersonKey } from '../memory/people.ts'
export { memoryState, type MemoryState } from '../memory/state.ts'

// For authors of stores
export {
  approvalAt,
  approvalKeys,
  checkApprovalFilter,
  checkPendingApprovals,
  CLOCK_TOLERANCE_MS,
  decidedApproval,
  isLiveAt,
  tooManyApprovals,
} from '../memory/approval-rules.ts'
export {
  checkGrantFilter,
  checkLiveGrants,
  grantAt,
  grantedBefore,
  isGrantOver,
  matchesGrant,
  MAX_GRANTS,
  revokedGrant,
  tooManyGrants,
} from '../memory/grant-rules.ts'
export { checkStateKey, checkStatePrefix, parseStateText, toStateExpiry, toStateText } from '../memory/state-text.ts'
