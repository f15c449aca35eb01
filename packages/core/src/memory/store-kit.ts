// What every store of approvals or state has in common, for those who write one: `@toolgate/core/store-kit`.
export { checkStateKey, checkStatePrefix, toStateExpiry, parseStateText, toStateText } from './state-text.ts'
export {
  approvalAt,
  approvalKeys,
  checkPendingApprovals,
  decidedApproval,
  isLiveAt,
  tooManyApprovals,
} from './approval-rules.ts'
