// `@toolgate/core/internal`: shared by the packages of Toolgate only. Not part of the public API; may change in any release.

// Helpers: options, texts, JSON, waiting and listeners
export { errnoOf, isErrorOf, messageOf } from '../util/errors.ts'
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
export { createBoundedCache } from '../util/bounded-cache.ts'
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
export { Mirror } from '../state/mirror.ts'
export { checkObject, checkShape, describeUnknown, type Shape, shapeOf, toNamedMap } from '../util/shape.ts'

// Stores
export type { Fact, KeptFacts } from '../audit/facts.ts'
export { hashRecord } from '../audit/chain.ts'
export { isSigned } from '../audit/checkpoint.ts'
export { parseRecord, RECORD_FIELDS, sealedOf } from '../audit/record.ts'
export { TOO_LARGE } from '../audit/sealed-input.ts'
export { inputsRemovedBefore } from '../audit/verify-inputs.ts'
export { approvalStatusAt, type DatedApproval, isEndSeen } from '../memory/approval-rules.ts'

// Callers, gates and views
export { listApps } from '../groups/app.ts'
export { createStates } from '../groups/states.ts'
export { alwaysAvailable } from '../memory/availability.ts'
export type { RunHistories } from '../gate/gate.ts'
export { callerKey, callerParts } from '../ports/caller.ts'
export { makersOf, NOBODY, notOther } from '../memory/four-eyes.ts'
export type { NamedGateOptions, NativeGateOptions } from '../gate/options.ts'
export type { HaltRequest, HaltTarget } from '../state/halts.ts'
export type { Preferences } from '../state/preferences.ts'
export { countsOf, isView, isViewOf } from '../gate/view-of.ts'

// Cancelling
export { type Canceller, type Cancelling, createCanceller, toCancelling } from '../util/cancelling.ts'

// Tools
export { dialectOf, idKeyword } from '../json-schema/document.ts'
export { metaSchemasOf } from '../json-schema/drafts.ts'
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
export { isOwnTool, isRequestTool, markOwnTool, markPassingTool } from '../tools/own-tool.ts'
export { compareToolIds, isItemId, kindOfId, RESERVED_NAMESPACES, RESOURCE_PREFIX, toToolId } from '../tools/tool-id.ts'
export { titleOf, type ToolIcon, type ToolMeta } from '../tools/tool.ts'

// Deadlines and lists
export { createDeadlines } from '../util/deadlines.ts'
export { type Link, LinkedList } from '../util/linked-list.ts'

// Parts of a configuration
export type { Admission, NoPlace, Place } from '../ports/ports.ts'

// Results of calls
export { isToolError, outputText } from '../util/output.ts'

// Traces
export { originalHash } from '../tools/definition-hash.ts'

// Rules about what happened
export {
  createOriginIndex,
  type OriginBounds,
  type OriginIndex,
  type OriginItem,
} from '../history/origins/origin-index.ts'
