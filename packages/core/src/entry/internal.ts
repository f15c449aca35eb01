// `@toolgate/core/internal`: shared by the packages of Toolgate only. Not part of the public API; may change in any release.

// Helpers: options, texts, JSON, waiting and listeners
export type { RunScope, RunSource } from '../call/run-source.ts'
export { errnoOf, messageOf } from '../util/errors.ts'
export type { MaybePromise, CallTrace } from '../ports/ports.ts'
export {
  backoffMs,
  type BackoffOptions,
  catchRejection,
  chain,
  endsWithin,
  isThenable,
  runWithDeadline,
  safely,
  TimeoutError,
} from '../util/async.ts'
export { createEmitter, type Emitter } from '../util/emitter.ts'
export { sha256Hex } from '../util/hash.ts'
export {
  canonicalize,
  deepFreeze,
  escapePointer,
  frozenCopy,
  type InputProblem,
  isObject,
  isPlain,
  type JsonObject,
  unescapePointer,
} from '../util/json.ts'
export { holdsBigint } from '../util/integers.ts'
export { JsonFault } from '../util/json-fault.ts'
export {
  BACKSLASH,
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  COLON,
  COMMA,
  describeExcess,
  endOfString,
  measureJson,
  QUOTE,
} from '../util/json-measure.ts'
export type { JsonIntegers } from '../util/json-parser.ts'
export { JSON_BOUNDS, readJson, readOwnJson, readUtf8 } from '../util/read-json.ts'
export { cut, didYouMean, nearestNames, nearestOf } from '../util/text.ts'
export { LeaseEndedError, wordOf } from '../call/outcome.ts'
export { Mirror } from '../state/mirror.ts'
export { checkShape, type Shape, shapeOf, toNamedMap } from '../util/shape.ts'

// Stores
export { hashRecord } from '../audit/chain.ts'
export { isSigned } from '../audit/checkpoint.ts'
export { parseRecord, RECORD_FIELDS, sealedOf } from '../audit/record.ts'
export { TOO_LARGE } from '../audit/sealed-input.ts'
export { inputsRemovedBefore } from '../audit/verify-inputs.ts'
export { approvalStatusAt, type DatedApproval, isEndSeen } from '../memory/approval-rules.ts'

// Callers, gates and views
export { createTrial } from '../change/trial.ts'
export { unlock } from '../change/scene.ts'
export { checkHistory, dryRun, type DryRun } from '../change/dry-run.ts'
export type { NeededChange } from '../change/needed-change.ts'
export { whatWouldAllow } from '../change/what-would-allow.ts'
export { mayStillNow, refusedNow } from '../change/may-still-now.ts'
export type { DependsOn, MayStill } from '../decide/decision.ts'
export type { Budget } from '../call/budgets.ts'
export type { RunHistories } from '../gate/gate.ts'
export { enterSaid, raiseLabels } from '../call/history.ts'
export type { RunHistory } from '../history/histories.ts'
export type { RaisedLabel } from '../history/monitor.ts'
export { markPassingTool } from '../tools/own-tool.ts'
export { type Approvals, createApprovals, isShownWhole, mayApproveByDefault } from '../call/approvals.ts'
export { callerKey } from '../ports/caller.ts'
export { makersOf, notOther } from '../memory/four-eyes.ts'
export type { NamedGateOptions, NativeGateOptions } from '../gate/options.ts'
export type { HaltRequest, HaltTarget } from '../state/halts.ts'
export type { Preferences } from '../state/preferences.ts'
export { countsOf, isView, isViewOf } from '../gate/view-of.ts'

// Cancelling
export { type Canceller, type Cancelling, createCanceller, toCancelling } from '../util/cancelling.ts'

// Tools
export { createValidator } from '../call/validate.ts'
export type { SchemaWarning } from '../json-schema/skipped.ts'
export { REQUEST_TEXTS } from '../search/request-tool.ts'
export { foldMarks, joinLetters } from '../redact/spelling.ts'
export {
  OVERLAY,
  type ToolOverlay,
  type NativeToolRecord,
  type RecordTool,
  type UnnamedToolDefinition,
} from '../tools/record.ts'
export { isRequestTool, markOwnTool } from '../tools/own-tool.ts'
export { isOwnTool } from '../tools/own-tool.ts'
export { compareToolIds, isItemId, kindOfId, toToolId } from '../tools/tool-id.ts'
export { titleOf, type ToolIcon, type ToolMeta } from '../tools/tool.ts'

// Hooks without a gate
export {
  type AskedCall,
  askEach,
  type BeforeAnswer,
  type HookPorts,
  type HooksOf,
  parseHooks,
  tellEach,
} from '../call/hooks.ts'
export { type StreamEnd, watchStream } from '../call/streams.ts'
export { trailLines } from '../call/trail.ts'
export { reason } from '../decide/decision.ts'
export { messageFor, readsAsUnknown } from '../decide/message.ts'
export { createDeadlines } from '../util/deadlines.ts'
export { type Link, LinkedList } from '../util/linked-list.ts'

// Parts of a configuration
export type { HooksInput } from '../call/hooks.ts'
export { parseLimits, type RateLimit } from '../call/limits.ts'
export type { CapPart, ConcurrencyCap } from '../call/slots.ts'
export type { Admission, NoPlace, Place } from '../ports/ports.ts'
export type { LayerAnswer } from '../decide/decide.ts'
export { type ClauseCoverage, unjudgedId } from '../decide/coverage.ts'
export { type ClauseRef, clauseText } from '../policy/clause-ref.ts'
export { parsePolicies } from '../policy/parse.ts'
export { findIdleClauses, type IdleClause } from '../policy/idle-clauses.ts'

// Results of calls
export { outputText } from '../util/output.ts'
export { isToolError } from '../util/output.ts'

// Traces
export { originalHash } from '../tools/definition-hash.ts'

// Rules about what happened
export {
  createOriginIndex,
  type OriginBounds,
  type OriginIndex,
  type OriginItem,
} from '../history/origins/origin-index.ts'
