// The names that most programs need. Others are in entries by topic: `@toolgate/core/stores`, `/audit`, `/toolset` and so
// on.

// The gate, and what one caller sees through it
export { createGate, type Gate } from './gate/gate.ts'
export type { ForkOptions, GateOptions } from './gate/options.ts'
export type { NarrowOptions, View } from './gate/view.ts'
export type { ViewOptions, Visibility } from './gate/views.ts'

// Callers
export { type Caller, defineCaller, isDefinedCaller } from './ports/caller.ts'

// Tools
export type { ToolRecord } from './tools/record.ts'
export type { StandardSchema } from './tools/standard-schema.ts'
export {
  type CallContext,
  defineTool,
  type JsonSchema,
  type Progress,
  type Tool,
  type ToolAnnotations,
  type ToolDefinition,
} from './tools/tool.ts'

// Policy
export { limitsFromEnv } from './call/limits.ts'
export { lint } from './gate/lint.ts'
export { combinePolicies, type Clause, type FunctionPolicy, type Policies, type Policy } from './policy/policy.ts'
export { policyFromEnv, sendersFromEnv } from './policy/environment.ts'
export type { LintWarning } from './policy/lint.ts'

// Decisions
export type { Explanation } from './decide/decide.ts'
export {
  type Decision,
  type Reason,
  type ReasonCode,
  REASONS,
  type OutcomeWord,
  retryAfterSeconds,
} from './decide/decision.ts'

// Calls
export type { CallRequest } from './call/attempt.ts'
export type { Hooks } from './call/hooks.ts'
export type { CallDone, CallFailed, CallInputRequired, CallOutcome, CallRefused, CallWaiting } from './call/outcome.ts'
export type { Halt } from './state/halts.ts'
export type { Approval, Telemetry } from './ports/ports.ts'

// Limits without a gate
export { createToolRateLimiter, parseToolRateLimits, type ToolRateLimiter } from './call/rate-limiter.ts'

// Records and traces
export { memoryAudit } from './audit/memory.ts'
export { combineTelemetry } from './telemetry/combine.ts'

// Errors
export { HaltedError } from './call/outcome.ts'
export { StreamTooLongError } from './call/streams.ts'
export { ConfigError, type FaultCode, FAULTS, ToolgateError, UnknownToolError } from '@toolgate/values'
