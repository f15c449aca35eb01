// What every store of approvals or state has in common, for those who write one: `@toolgate/core/store-kit`.
export { checkStateKey, checkStatePrefix, toStateExpiry, parseStateText, toStateText } from './state-text.ts'
export {
  approvalAt,
  approvalKeys,
  checkApprovalFilter,
  checkPendingApprovals,
  decidedApproval,
  isLiveAt,
  tooManyApprovals,
} from './approval-rules.ts'
export { checkLockOptions } from './lock-options.ts'
