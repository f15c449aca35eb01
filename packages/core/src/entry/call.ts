// `@toolgate/core/call`: the checks of a call, and their parts. For packages that build on core, such as
// `@toolgate/change`; may change in any release.

// The parts of a view that calls use
export { countsOf, isView, isViewOf } from '../gate/view-of.ts'
export type { CallPorts, CallView } from '../call/attempt.ts'
export { portsOf, toCallView } from '../gate/view.ts'
export type { RunScope, RunSource } from '../call/run-source.ts'
export { LeaseEndedError, wordOf } from '../call/outcome.ts'
export { acceptedInput } from '../call/deciding.ts'
export { coerceInput } from '../call/coerce-input.ts'
export { createValidator } from '../call/validate.ts'
export { type StreamEnd, watchStream } from '../call/streams.ts'
export { trailLines } from '../call/trail.ts'

// The preview of a call
export { preview } from '../call/preview.ts'
export { operandsOfCall } from '../call/asked-call.ts'
export { mayStillNow, refusedNow } from '../gate/may-still-now.ts'
export { probeInputs } from '../gate/probe-inputs.ts'

// Approvals and history
export { approvalStatusAt, type DatedApproval, isEndSeen } from '../memory/approval-rules.ts'
export { hasApproved, missingRoles, needsVotes } from '../memory/approver-votes.ts'
export { namesOfFields } from '../memory/approval-edit.ts'
export { makersOf, NOBODY, notOther, voterOf } from '../memory/four-eyes.ts'
export { peopleOf } from '../policy/approver.ts'
export { type Approvals, createApprovals, isShownWhole, mayApproveByDefault } from '../call/approvals.ts'
export type { DecidedApproval, VerdictOfPerson } from '../call/approvals.ts'
export type { Grants } from '../call/granting.ts'
export { grantText } from '../audit/gate-events.ts'
export { MAX_GRANTED_CHARS } from '../memory/granted-input.ts'
export { enterSaid, raiseLabels } from '../call/history.ts'

// Limits, caps and budgets
export type { Admission, NoPlace, Place } from '../ports/ports.ts'
export { createUsesOfTool, type ParsedLimit, parseLimits, type RateLimit } from '../call/limits.ts'
export { lintLimits } from '../call/limit-lint.ts'
export { CostError, type LimitUseOf, withCosts } from '../call/costs.ts'
export {
  type CapInput,
  type CapPart,
  type CapUse,
  type ConcurrencyCap,
  createSlots,
  parseCaps,
  type ParsedCap,
} from '../call/slots.ts'
export type { Budget } from '../call/budgets.ts'
export { Uses } from '../memory/uses.ts'
export { countedAs } from '../tools/tool-id.ts'

// Hooks
export {
  askEach,
  type AskedCall,
  type BeforeAnswer,
  type HookPorts,
  type HooksInput,
  type HooksOf,
  parseHooks,
  tellEach,
} from '../call/hooks.ts'
