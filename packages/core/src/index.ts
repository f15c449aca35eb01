export { type Caller, callerKey, defineCaller, isDefinedCaller } from './caller.ts'
export { type Canceller, type Cancelling, createCanceller, toCancelling } from './cancelling.ts'
export {
  type Decision,
  strictest,
  type Layer,
  OUTCOMES,
  type OutcomeWord,
  type Reason,
  type ReasonCode,
  REASONS,
  retryAfterSeconds,
} from './decide/decision.ts'
export {
  type CallContext,
  type Progress,
  defineTool,
  type JsonSchema,
  type Tool,
  type ToolAnnotations,
  type ToolDefinition,
  type ToolIcon,
  type ToolMeta,
} from './tools/tool.ts'
export type { CallDone, CallFailed, CallOutcome, CallRefused, CallWaiting, FailureCode } from './call/outcome.ts'
export { ConfigError, type FaultCode, FAULTS, messageOf, safely, ToolgateError, UnknownToolError } from './errors.ts'
export type {
  Clause,
  Condition,
  FunctionPolicy,
  CombinedPolicies,
  Policies,
  Policy,
  PolicyAnswer,
  SelectorText,
} from './policy/policy.ts'
export { type Environment, type EnvironmentOptions, policyFromEnv } from './policy/environment.ts'
export { sendersFromEnv } from './policy/senders.ts'
export { limitsFromEnv } from './call/limits-environment.ts'
export {
  type Approval,
  type ApprovalAbout,
  type ApprovalBinding,
  type ApprovalDecision,
  type PolicyDocument,
  type ApprovalFilter,
  type ApprovalStatus,
  type ApprovalStore,
  type ApprovalVerdict,
  APPROVAL_DECISIONS,
  APPROVAL_STATUSES,
  ATTEMPT_EVENTS,
  type AttemptEvent,
  AUDIT_EVENTS,
  type AuditCounter,
  type AuditCountQuery,
  type AuditCounts,
  type AuditEntry,
  type AuditEvent,
  type AuditExporter,
  type AuditExportQuery,
  type AuditFilter,
  AUDIT_OUTCOMES,
  type AuditOutcome,
  type AuditQuery,
  type AuditReader,
  type AuditRecord,
  type AuditSink,
  type AvailabilitySource,
  type Clock,
  type CallTrace,
  type CounterStore,
  GATE_EVENTS,
  type GateEvent,
  type GroupState,
  type InputProblem,
  type Lease,
  type LimitAnswer,
  type LimitUse,
  type LockOptions,
  type MaybePromise,
  type OutcomeCounts,
  type ProbeKind,
  type ProbeState,
  type RunOfCall,
  type SessionLock,
  type StateEntry,
  type StateOptions,
  type StateStore,
  type Telemetry,
  TERMINAL_EVENTS,
  type TracedCall,
  type ValidateInput,
} from './ports.ts'
export { compareToolIds, toToolId } from './tools/tool-id.ts'

export { canonicalize } from './canonical.ts'
export { memoryAudit, type MemoryAudit } from './audit/memory.ts'
export {
  createGate,
  type ForkOptions,
  type Gate,
  type GateOptions,
  type Locks,
  type NamedGateOptions,
  type OwnToolName,
  type NativeGateOptions,
  type RecordGateOptions,
} from './gate.ts'
export type { ViewOptions, Visibility } from './views.ts'
export {
  createSteps,
  type PrepareStep,
  type PrepareStepContext,
  type Step,
  type StepCall,
  type StepChange,
  type StepInput,
  type StepRecord,
  type Steps,
  type StepsOptions,
  unchanged,
  withTools,
} from './steps.ts'
export { type Approvals, createApprovals, mayApproveByDefault } from './call/approvals.ts'
export { memoryApprovals } from './memory/approvals.ts'
export { memoryAvailability, type MemoryAvailability } from './memory/availability.ts'
export { systemClock } from './memory/clock.ts'
export { memoryCounters, type MemoryCounters, type SyncCounterStore } from './memory/counters.ts'
export { combinePolicies } from './policy/combine.ts'
export { parsePolicies } from './policy/parse.ts'
export { parseGroups, type Group, type GroupsInput, type LoadTools, type UnlockRule } from './tools/groups.ts'
export type { Probe, ProbeAnswer, ProbeAsking, ProbeFunction } from './tools/probe.ts'
export { type Availability, type AvailabilityOptions, createAvailability } from './groups/availability.ts'
export type { GroupChange } from './groups/telling.ts'
export type { Need, NeedKind } from './groups/needs.ts'
export type { GroupLoad, Loads } from './groups/loads.ts'
export type { AliasesInput } from './tools/aliases.ts'
export { parseSelector, matchesSelector, parseGlob, matchesGlob } from './tools/selector.ts'
export { parseLimits, type RateLimit, type ToolRateLimit, type LimitInput } from './call/limits.ts'
export { createToolset, type Toolset } from './tools/toolset.ts'
export type { NamespaceEntry, NamespacePage, Page, PageRequest } from './tools/page.ts'
export {
  allowIds,
  and,
  byCategory,
  byNamespace,
  byTagsAll,
  byTagsAny,
  byTagsNone,
  denyIds,
  not,
  or,
  type ToolFilter,
} from './tools/filters.ts'
export { buildToolset, type BuildToolsetOptions } from './decide/build-toolset.ts'
export type { Catalog, CatalogChange, Conflict, Rejection, Source, SourceFailure } from './tools/catalog.ts'
export type { RejectedTool } from './tools/read-source.ts'
export type { NativeToolRecord, RecordTool, ToolRecord, UnnamedToolDefinition } from './tools/record.ts'
export type { ParseInput, StandardSchema } from './tools/standard-schema.ts'
export { expose } from './expose/expose.ts'
export {
  type CustomExposure,
  type CustomTarget,
  defineTarget,
  type SchemaFeatures,
  type TargetDefinition,
  type ToolParts,
} from './expose/define-target.ts'
export {
  fromAnthropicTools,
  fromBedrockTools,
  fromGeminiTools,
  fromOpenAiTools,
  type ImportedTools,
  type ImportError,
  type ImportOptions,
} from './expose/imports/import-tools.ts'
export type { ToolOverlay } from './tools/overlay.ts'
export type {
  ExposedNames,
  ExposedTools,
  ExposeError,
  ExposeErrorCode,
  ExposeWarning,
  Exposure,
} from './expose/exposure.ts'
export type { ExposeMode, ExposeOptions } from './expose/options.ts'
export { EXPOSE_TARGETS, type ExposeTarget } from './expose/target-names.ts'
export type { TokenCount, Tokenizer } from './expose/tokens.ts'
export { type ListedTool, toListedTool } from './expose/mcp-tool.ts'
export { type McpResult, errorResult, toErrorResult } from './expose/mcp-result.ts'
export { type JsonRpcError, relayedError } from './expose/relayed-error.ts'
export { toWireName, createWireNames, type WireNames } from './expose/names.ts'
export { definitionHash } from './tools/definition-hash.ts'
export { sha256Hex } from './hash.ts'
export type { CallRequest } from './call/attempt.ts'
export { createValidator } from './call/validate.ts'
export { GateClosedError } from './call/closed.ts'
export { HaltedError } from './call/halted.ts'
export type { GateNotice } from './events.ts'
export type { Halt, HaltRequest, HaltTarget } from './halts/halt.ts'
export type { Apps } from './app-views.ts'
export type { App, AppImport, AppInfo, AppsInput } from './apps/app.ts'
export type { Preferences } from './preferences/switches.ts'
export type { View, NarrowOptions } from './view.ts'
export type { LintCode, LintWarning } from './policy/lint.ts'
export { lint, type LintOptions } from './lint-config.ts'
export { type Calling, callingOf } from './search/calling.ts'
export {
  type DetailsAnswer,
  type MetaAnswer,
  type MetaToolOptions,
  metaTools,
  type SearchAnswer,
} from './search/meta-tools.ts'
export { REQUEST_TEXTS } from './search/request-tool.ts'
export { SEARCH_DETAILS, type SearchDetail, type SearchHit, type SearchOptions } from './search/search.ts'
export type { Explanation, LayerAnswer } from './decide/decide.ts'
export type { SchemaWarning } from './json-schema/skipped.ts'
export { memoryLock, type MemoryLock } from './memory/lock.ts'
export { memoryState, type MemoryState } from './memory/state.ts'
export { combineTelemetry } from './telemetry/combine.ts'
export { type AcceptPin, createPins, type PinnedTool, type Pins, type PinsOptions } from './pins/pins.ts'
export {
  DEFINITION_MODES,
  type DefinitionMode,
  NEW_TOOL_MODES,
  type NewToolMode,
  PIN_MODES,
  type PinMode,
  type PinRules,
} from './pins/pin-rules.ts'
export type { PinStatus } from './pins/holding.ts'
export { isRequestTool, markOwnTool } from './tools/own-tool.ts'
export { isToolError } from './call/tool-error.ts'
export type { PinEvent } from './pins/notices.ts'
export type { DefinitionChange, DefinitionDiff } from './pins/diff.ts'
export {
  checkDefinition,
  DEFINITION_LIMITS,
  type DefinitionFinding,
  type FindingCode,
  FINDINGS,
} from './pins/definition-check.ts'
export { createRedactor, redactor, type Redactor, type RedactorOptions } from './redact/redact.ts'
export {
  createToolRateLimiter,
  parseToolRateLimits,
  type RateLimitAnswer,
  type ToolRateLimiter,
  type ToolRateLimiterOptions,
} from './call/rate-limiter.ts'
export type { AfterToolCall, BeforeAnswer, BeforeToolCall, Hooks, HooksInput, HooksOf } from './call/hooks.ts'
export { type CapInput, type CapPart, type ConcurrencyCap, parseCaps } from './call/slots.ts'
export { StreamTooLongError } from './call/streams.ts'
export {
  type ToolMap,
  type ToolMapCall,
  type ToolMapCaller,
  type ToolMapEnd,
  type ToolMapExecution,
  type ToolMapHooks,
  type WrappedToolMap,
  wrapToolMapWithHooks,
  type WrapToolMapOptions,
} from './call/wrap-tool-map.ts'
export { nearestNames } from './tools/nearest-names.ts'
export { didYouMean, nearestOf } from './util/did-you-mean.ts'
export { checkShape, type Shape, shapeOf, toNamedMap } from './util/shape.ts'
export { isGate, isView, isViewOf } from './view-of.ts'
export { outputText } from './call/output.ts'
