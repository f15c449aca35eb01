export { type Caller, callerKey, defineCaller } from './caller.ts'
export { type Decision, type Layer, OUTCOMES, type OutcomeWord, strictest } from './decision/outcome.ts'
export { type Reason, type ReasonCode, REASONS } from './decision/reason.ts'
export type { CallContext, Progress } from './door/execute.ts'
export type { CallDone, CallFailed, CallOutcome, CallRefused, CallWaiting, FailureCode } from './door/outcome.ts'
export { ConfigError, type FaultCode, FAULTS, ToolgateError, UnknownToolError } from './errors.ts'
export type { Clause, Condition, Policy } from './policy/policy.ts'
export {
  type Approval,
  type ApprovalBinding,
  type ApprovalStatus,
  type ApprovalStore,
  type ApprovalVerdict,
  AUDIT_EVENTS,
  type AuditEntry,
  type AuditEvent,
  type AuditQuery,
  type AuditReader,
  type AuditRecord,
  type AuditSink,
  type AvailabilitySource,
  type Clock,
  type CounterStore,
  type GroupState,
  type InputProblem,
  type LimitAnswer,
  type LimitUse,
  type MaybePromise,
  TERMINAL_EVENTS,
  type ValidateInput,
} from './ports.ts'
export { defineTool, type JsonSchema, type Tool, type ToolAnnotations, type ToolDefinition } from './tools/tool.ts'
export { compareToolIds, toToolId } from './tools/tool-id.ts'
export type { CallRequest, View } from './view.ts'
