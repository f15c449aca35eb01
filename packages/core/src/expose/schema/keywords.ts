/** What the value of a keyword is, as far as it must be understood to be rewritten. */
export type Shape =
  | 'schema'
  /** A schema, or `false` and `true`, which mean something of their own there. */
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
export const KEYWORDS: ReadonlyMap<string, Shape> = new Map<string, Shape>([
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

/** Says nothing about values, or only where a reference leads. Read, and never written. */
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

/** Tell people and models something, and constrain nothing. */
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
export type TypeName = (typeof TYPES)[number]

/** The type that a keyword speaks of. It says nothing about values of another one. */
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

/** Answers whether a keyword says anything about values of a type. */
export function appliesTo(keyword: string, type: string): boolean {
  const spoken = SPEAKS_OF.get(keyword)
  return spoken === undefined || spoken === type || (spoken === 'number' && type === 'integer')
}

/** Gives the type of a JSON value, `number` for every number. */
export function typeOf(value: unknown): TypeName {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value as 'string' | 'number' | 'boolean' | 'object'
}

type Spoken = 'string' | 'number' | 'object' | 'array'

function speak(type: Spoken, keywords: readonly string[]): [string, Spoken][] {
  return keywords.map((keyword) => [keyword, type])
}
