// `@toolgate/core/internal`: shared by the packages of Toolgate only. Not part of the public API; may change in any release.

// Helpers: options, texts, JSON, waiting and listeners
export type { MaybePromise, CallTrace } from '../ports/ports.ts'
export { Mirror } from '../state/mirror.ts'

// Stores
export type { Fact, KeptFacts } from '../audit/facts.ts'
export { hashRecord } from '../audit/chain.ts'
export { pointOf } from '../audit/leaf.ts'
export { parseRecord, RECORD_FIELDS, sealedOf } from '../audit/record.ts'
export { TOO_LARGE } from '../audit/sealed-input.ts'
export { createFindings } from '../audit/verdict.ts'
export { inputsRemovedBefore } from '../audit/verify-inputs.ts'

// Callers, gates and views
export { listApps } from '../groups/app.ts'
export { createStates } from '../groups/states.ts'
export { alwaysAvailable } from '../memory/availability.ts'
export type { RunHistories } from '../gate/gate.ts'
export { callerKey, callerParts } from '../ports/caller.ts'
export type { NamedGateOptions, NativeGateOptions } from '../gate/options.ts'
export { hasUsedToolIn } from '../gate/used-tools.ts'
export type { HaltRequest, HaltTarget } from '../state/halts.ts'
export type { Preferences } from '../state/preferences.ts'

// Tools
export { FOR_TOOL, type ParsedInput, TRANSFORM_HINT } from '../tools/standard-schema.ts'
export { REQUEST_INPUT, REQUEST_TEXTS, type RequestInput } from '../search/request-tool.ts'
