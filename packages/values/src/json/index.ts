// `@toolgate/values/json`: JSON that is read within bounds, and its canonical form.

export { holdsBigint, toInteger } from './integers.ts'
export { JsonFault } from './json-fault.ts'
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
} from './json-measure.ts'
export type { JsonIntegers } from './json-parser.ts'
export { toJsonText } from './json-text.ts'
export {
  canonicalize,
  compareUnits,
  deepFreeze,
  escapePointer,
  frozenCopy,
  type InputProblem,
  isObject,
  isPlain,
  type JsonObject,
  mutableCopy,
  unescapePointer,
} from './json.ts'
export { patchedFields, withPatch } from './merge-patch.ts'
export { JSON_BOUNDS, readJson, readOwnJson, readUtf8 } from './read-json.ts'
