// `@toolgate/values/json-schema`: compiles JSON Schemas of every draft into checks that are bounded in time.

export { type Coercer, compileCoercer } from './coerce.ts'
export { compileDocument } from './compile.ts'
export { createReferences, dialectOf, idKeyword, isUntil, type References } from './document.ts'
export { type Draft, metaSchemasOf } from './drafts.ts'
export { type Field, findField, type Step } from './fields.ts'
export { type Check, isNumber, type Run, type Violation } from './run.ts'
export { findSkipped, type SchemaWarning } from './skipped.ts'
