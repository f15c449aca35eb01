import type { JsonSchema } from '@toolgate/core'
import { KEYWORDS, type KeywordForm, SILENT, TYPES } from './keywords.ts'
import { below, createNode, isObject, type SchemaNode, type NodeMap, type Note, SchemaProblem, toText } from './node.ts'

/** More than any real schema has: longer ones would block the process. */
const MAX_NODES = 10_000

/** Reads schemas of one document, which holds no object twice, into nodes. */
export type Reader = (raw: JsonSchema | boolean, pointer: string) => SchemaNode

/**
 * Returns a reader that rewrites draft-04, -06 and -07 as 2020-12, without a note since the meaning is the same, and
 * removes invalid parts (`properties: 5`), with a note.
 */
export function createReader(note: (note: Note) => void): Reader {
  const nodes = new Map<JsonSchema, SchemaNode>()

  const read: Reader = (raw, pointer) => {
    if (typeof raw === 'boolean') return raw ? createNode(pointer, EMPTY) : createNode(pointer, NOTHING)
    const known = nodes.get(raw)
    if (known) return known
    if (nodes.size >= MAX_NODES)
      throw new SchemaProblem('schema_too_large', '', `has more than ${MAX_NODES} schemas in it`)
    const words = new Map<string, unknown>()
    const node = createNode(pointer, words, raw)
    nodes.set(raw, node)
    const set = (keyword: string, value: unknown, at: string): void => {
      const shape = KEYWORDS.get(keyword)
      const word = shape === undefined ? value : readWord(shape, value, at)
      if (word !== undefined) words.set(keyword, word)
      else note({ path: at, feature: keyword, from: toText(value), to: undefined, action: 'removed' })
    }
    modernise(raw, pointer, set)
    return node
  }

  /** Returns `undefined` for an invalid value of the keyword. */
  function readWord(shape: KeywordForm, value: unknown, at: string): unknown {
    switch (shape) {
      case 'schema':
        return isSchema(value) ? read(value, at) : undefined
      case 'schema-or-flag':
        return typeof value === 'boolean' ? value : isSchema(value) ? read(value, at) : undefined
      case 'schemas':
        return Array.isArray(value) && value.length > 0 && value.every(isSchema)
          ? value.map((item, i) => read(item, below(at, i)))
          : undefined
      case 'schema-map':
        return isSchemaMap(value) ? readMap(value, at) : undefined
      case 'texts-map':
        return isObject(value) && Object.values(value).every(isTexts) ? value : undefined
      default:
        return CHECKS[shape](value)
    }
  }

  function readMap(schemas: SchemaMap, at: string): NodeMap {
    const keys = Object.keys(schemas).toSorted()
    return new Map(keys.map((key) => [key, read(schemas[key] ?? false, below(at, key))]))
  }

  return read
}

const EMPTY: ReadonlyMap<string, unknown> = new Map()
/** The schema `false`, which no value matches. */
const NOTHING: ReadonlyMap<string, unknown> = new Map([['not', createNode('', EMPTY, {})]])

type Plain = Exclude<KeywordForm, 'schema' | 'schema-or-flag' | 'schemas' | 'schema-map' | 'texts-map'>

const CHECKS: Readonly<Record<Plain, (value: unknown) => unknown>> = {
  types(value) {
    const types: readonly unknown[] = Array.isArray(value) ? [...new Set<unknown>(value)] : [value]
    if (types.length === 0 || !types.every((type) => TYPES.some((one) => one === type))) return undefined
    return types
  },
  texts: (value) => (isTexts(value) ? [...new Set(value)] : undefined),
  text: (value) => (typeof value === 'string' ? value : undefined),
  values: (value) => (Array.isArray(value) && value.length > 0 ? value : undefined),
  value: (value) => value,
  number: (value) => (typeof value === 'number' ? value : undefined),
  positive: (value) => (typeof value === 'number' && value > 0 ? value : undefined),
  count: (value) => (typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined),
  flag: (value) => (typeof value === 'boolean' ? value : undefined),
  pattern: (value) => (typeof value === 'string' && compiles(value) ? value : undefined),
}

type PlacedKeyword = readonly [keyword: string, value: unknown, pointer: string]

/** Returns the keywords of a schema as 2020-12, sorted, each with its original place. */
function modernise(
  raw: Readonly<Record<string, unknown>>,
  pointer: string,
  set: (...entry: PlacedKeyword) => void,
): void {
  for (const key of Object.keys(raw).toSorted()) {
    if (SILENT.has(key)) continue
    const at = below(pointer, key)
    const spell = EARLIER.get(key)
    if (!spell) set(key, raw[key], at)
    else for (const entry of spell(raw[key], at, raw)) set(...entry)
  }
}

type SpellEarlier = (value: unknown, at: string, raw: Readonly<Record<string, unknown>>) => readonly PlacedKeyword[]

/** Keywords that earlier drafts wrote in another way. */
const EARLIER: ReadonlyMap<string, SpellEarlier> = new Map<string, SpellEarlier>([
  ['items', (value, at) => [Array.isArray(value) ? ['prefixItems', value, at] : ['items', value, at]]],
  ['additionalItems', (value, at, raw) => (Array.isArray(raw['items']) ? [['items', value, at]] : [])],
  ['exclusiveMinimum', (value, at, raw) => spellExclusive('exclusiveMinimum', 'minimum', value, at, raw)],
  ['exclusiveMaximum', (value, at, raw) => spellExclusive('exclusiveMaximum', 'maximum', value, at, raw)],
  ['minimum', (value, at, raw) => (raw['exclusiveMinimum'] === true ? [] : [['minimum', value, at]])],
  ['maximum', (value, at, raw) => (raw['exclusiveMaximum'] === true ? [] : [['maximum', value, at]])],
  ['dependencies', spellDependencies],
  ['$recursiveRef', (value, at) => [['$ref', value, at]]],
  ['$dynamicRef', (value, at) => [['$ref', value, at]]],
  // OpenAPI's `nullable` has an effect only beside a `type`.
  ['nullable', (value, at) => (typeof value === 'boolean' ? [] : [['nullable', value, at]])],
  ['type', (value, at, raw) => [['type', raw['nullable'] === true ? [value, 'null'].flat() : value, at]]],
])

function spellExclusive(
  keyword: string,
  bound: string,
  value: unknown,
  at: string,
  raw: Readonly<Record<string, unknown>>,
): readonly PlacedKeyword[] {
  if (value === true) return [[keyword, raw[bound], at]]
  return value === false ? [] : [[keyword, value, at]]
}

function spellDependencies(value: unknown, at: string): readonly PlacedKeyword[] {
  if (!isObject(value)) return [['dependencies', value, at]]
  const entries = Object.entries(value)
  const required = entries.filter(([, item]) => Array.isArray(item))
  const schemas = entries.filter(([, item]) => !Array.isArray(item))
  return [
    ...(required.length > 0 ? [['dependentRequired', Object.fromEntries(required), at] as const] : []),
    ...(schemas.length > 0 ? [['dependentSchemas', Object.fromEntries(schemas), at] as const] : []),
  ]
}

function isSchema(value: unknown): value is JsonSchema | boolean {
  return typeof value === 'boolean' || isObject(value)
}

type SchemaMap = Readonly<Record<string, JsonSchema | boolean>>

function isSchemaMap(value: unknown): value is SchemaMap {
  return isObject(value) && Object.values(value).every(isSchema)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** Checks the syntax of a pattern. It is never run here. */
function compiles(pattern: string): boolean {
  try {
    return Boolean(new RegExp(pattern, 'u'))
  } catch {
    return false
  }
}
