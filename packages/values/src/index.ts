// `@toolgate/values`: errors, texts, waiting, listeners and checks of options. This package knows no tools, callers or
// rules.

export {
  AbortedError,
  backgroundTimeout,
  backoffMs,
  type BackoffOptions,
  catchRejection,
  chain,
  endsWithin,
  isThenable,
  type Outcome,
  runWithDeadline,
  safely,
  startTask,
  TimeoutError,
  withDeadline,
} from './async.ts'
export { createBoundedCache } from './bounded-cache.ts'
export { callAll, type Canceller, type Cancelling, createCanceller, toCancelling } from './cancelling.ts'
export { createDeadlines, type Deadlines, MAX_TIMER_MS, type Timed, type Watched } from './deadlines.ts'
export { createEmitter, type Emitter } from './emitter.ts'
export {
  ConfigError,
  errnoOf,
  type FaultCode,
  FAULTS,
  isErrorOf,
  messageOf,
  ToolgateError,
  UnknownToolError,
} from './errors.ts'
export { type FewerItems, withFewerItems } from './fewer-items.ts'
export { findEach, findText } from './find-text.ts'
export { hmacSha256Hex, sha256Hex } from './hash.ts'
export { type Link, LinkedList } from './linked-list.ts'
export {
  capOutput,
  cutText,
  isReadableStream,
  isStream,
  isToolError,
  outputText,
  sizeOf,
  toolErrorOf,
} from './output.ts'
export { hasNullsLeftOut, markNullsLeftOut } from './nulls-left-out.ts'
export { Revision } from './revision.ts'
export {
  checkMethods,
  checkObject,
  checkShape,
  describeUnknown,
  problemWithFields,
  type Shape,
  shapeOf,
  toNamedMap,
} from './shape.ts'
export { createShares } from './shares.ts'
export { cut, didYouMean, editDistance, formatCodePoint, formatNonAscii, nearestNames, nearestOf } from './text.ts'
export { spend, type Work, WorkSpentError } from './work.ts'
