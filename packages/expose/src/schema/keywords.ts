import { isDeepStrictEqual } from 'node:util'
import { both, type SchemaNode, type NodeMap } from './node.ts'

/** The kind of a keyword's value, as far as rewrites need it. */
export type KeywordForm =
  | 'schema'
  /** A schema, or `false` or `true` with a special meaning. */
  | 'schema-or-flag'
  | 'schemas'
  | 'schema-map'
  | 'texts-map'
  | 'types'
  | 'texts'
  | 'text'
  | 'values'
  | 'value'
  | 'number'
  | 'positive'
  | 'count'
  | 'flag'
  | 'pattern'

/** The keywords of JSON Schema 2020-12, in the order in which they are written. */
export const KEYWORDS: ReadonlyMap<string, KeywordForm> = new Map<string, KeywordForm>([
  ['$ref', 'text'],
  ['type', 'types'],
  ['title', 'text'],
  ['description', 'text'],
  ['enum', 'values'],
  ['const', 'value'],
  ['default', 'value'],
  ['examples', 'values'],
  ['deprecated', 'flag'],
  ['readOnly', 'flag'],
  ['writeOnly', 'flag'],
  ['format', 'text'],
  ['pattern', 'pattern'],
  ['minLength', 'count'],
  ['maxLength', 'count'],
  ['contentEncoding', 'text'],
  ['contentMediaType', 'text'],
  ['contentSchema', 'schema'],
  ['minimum', 'number'],
  ['exclusiveMinimum', 'number'],
  ['maximum', 'number'],
  ['exclusiveMaximum', 'number'],
  ['multipleOf', 'positive'],
  ['properties', 'schema-map'],
  ['required', 'texts'],
  ['additionalProperties', 'schema-or-flag'],
  ['patternProperties', 'schema-map'],
  ['propertyNames', 'schema'],
  ['minProperties', 'count'],
  ['maxProperties', 'count'],
  ['dependentRequired', 'texts-map'],
  ['dependentSchemas', 'schema-map'],
  ['unevaluatedProperties', 'schema-or-flag'],
  ['prefixItems', 'schemas'],
  ['items', 'schema-or-flag'],
  ['contains', 'schema'],
  ['minContains', 'count'],
  ['maxContains', 'count'],
  ['minItems', 'count'],
  ['maxItems', 'count'],
  ['uniqueItems', 'flag'],
  ['unevaluatedItems', 'schema-or-flag'],
  ['allOf', 'schemas'],
  ['anyOf', 'schemas'],
  ['oneOf', 'schemas'],
  ['not', 'schema'],
  ['if', 'schema'],
  ['then', 'schema'],
  ['else', 'schema'],
])

/** Keywords that only identify or locate schemas. They are read and never written. */
export const SILENT: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  '$vocabulary',
  '$anchor',
  '$dynamicAnchor',
  '$recursiveAnchor',
  '$defs',
  'definitions',
])

/** Keywords that inform people and models, and constrain nothing. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
])

export const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] as const
type TypeName = (typeof TYPES)[number]

/** The type to which each keyword applies. Values of other types are not affected. */
export const SPEAKS_OF: ReadonlyMap<string, 'string' | 'number' | 'object' | 'array'> = new Map([
  ...speak('string', ['format', 'pattern', 'minLength', 'maxLength', 'contentEncoding', 'contentMediaType']),
  ...speak('string', ['contentSchema']),
  ...speak('number', ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'multipleOf']),
  ...speak('object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames']),
  ...speak('object', ['minProperties', 'maxProperties', 'dependentRequired', 'dependentSchemas']),
  ...speak('object', ['unevaluatedProperties']),
  ...speak('array', ['prefixItems', 'items', 'contains', 'minContains', 'maxContains', 'minItems', 'maxItems']),
  ...speak('array', ['uniqueItems', 'unevaluatedItems']),
])

/** Returns whether a keyword applies to values of a type. */
export function appliesTo(keyword: string, type: string): boolean {
  const spoken = SPEAKS_OF.get(keyword)
  return spoken === undefined || spoken === type || (spoken === 'number' && type === 'integer')
}

/** Returns the type of a JSON value, `number` for every number. */
export function typeOf(value: unknown): TypeName {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value as 'string' | 'number' | 'boolean' | 'object'
}

type Spoken = 'string' | 'number' | 'object' | 'array'

function speak(type: Spoken, keywords: readonly string[]): [string, Spoken][] {
  return keywords.map((keyword) => [keyword, type])
}

/**
 * Returns the value of a keyword that is equivalent to two values together, or `undefined` if there is none.
 *
 * For annotations (`title`, `default`) it is the first value.
 */
export function meet(keyword: string, a: unknown, b: unknown): unknown {
  if (ANNOTATIONS.has(keyword)) return a
  const meetWords = MEETINGS.get(keyword)
  if (meetWords) return meetWords(a as never, b as never)
  return isDeepStrictEqual(a, b) ? a : undefined
}

type Meeting = (a: never, b: never) => unknown

const larger: Meeting = (a: number, b: number) => Math.max(a, b)
const smaller: Meeting = (a: number, b: number) => Math.min(a, b)
const joined: Meeting = (a: readonly unknown[], b: readonly unknown[]) => [...a, ...b]

const MEETINGS: ReadonlyMap<string, Meeting> = new Map<string, Meeting>([
  ['type', meetTypes],
  ['enum', meetValues],
  ['required', (a: readonly string[], b: readonly string[]) => [...new Set([...a, ...b])]],
  ['properties', meetMaps],
  ['patternProperties', meetMaps],
  ['dependentSchemas', meetMaps],
  ['additionalProperties', meetSchemas],
  ['items', meetSchemas],
  ['propertyNames', meetSchemas],
  ['contains', meetSchemas],
  ['allOf', joined],
  ...['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains'].map(
    (keyword): [string, Meeting] => [keyword, larger],
  ),
  ...['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains'].map(
    (keyword): [string, Meeting] => [keyword, smaller],
  ),
])

function meetTypes(a: readonly string[], b: readonly string[]): readonly string[] | undefined {
  const types = a.flatMap((type) => {
    if (b.includes(type)) return [type]
    if (type === 'number' && b.includes('integer')) return ['integer']
    return type === 'integer' && b.includes('number') ? ['integer'] : []
  })
  return types.length > 0 ? [...new Set(types)] : undefined
}

function meetValues(a: readonly unknown[], b: readonly unknown[]): readonly unknown[] | undefined {
  const values = a.filter((value) =>
    b.some((other) => typeOf(value) === typeOf(other) && isDeepStrictEqual(value, other)),
  )
  return values.length > 0 ? values : undefined
}

function meetMaps(a: NodeMap, b: NodeMap): NodeMap {
  const met = new Map(a)
  for (const [key, node] of b) {
    const first = met.get(key)
    met.set(key, first ? both(first, node) : node)
  }
  return new Map([...met].toSorted(([x], [y]) => (x < y ? -1 : 1)))
}

function meetSchemas(a: SchemaNode | boolean, b: SchemaNode | boolean): SchemaNode | boolean {
  if (typeof a === 'boolean') return a ? b : a
  if (typeof b === 'boolean') return b ? a : b
  return both(a, b)
}
