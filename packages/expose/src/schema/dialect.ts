import type { JsonSchema } from '@toolgate/core'
import { KEYWORDS } from './keywords.ts'
import { isObject, listOf } from './node.ts'

/** The JSON Schema features of a target, as data. Missing ones are rewritten (`rewrites.ts`) or removed. */
export interface TargetDialect {
  /** Part of the key of cached results. */
  readonly name: string
  /** The supported keywords. Absent: all of 2020-12, and unknown ones. */
  readonly keywords?: ReadonlySet<string>
  /** Keywords that are not supported at the root. */
  readonly rootLacks?: ReadonlySet<string>
  /** The supported formats. Absent: all. */
  readonly formats?: ReadonlySet<string>
  /** Whether the root must be an object, as in all schemas but output schemas. */
  readonly objectRoot: boolean
  /** Whether references stay, with their targets in `$defs`, or are replaced by their targets. */
  readonly refs: 'kept' | 'inlined'
  /** Whether a `$ref` must be the only keyword of its schema. */
  readonly bareRefs?: boolean
  /** A recursive `$ref` is allowed only below a property that is not required. */
  readonly recursion?: 'in-optional'
  /** Whether an `anyOf` must be the only constraint of its schema. */
  readonly bareAnyOf?: boolean
  /** How several types of one value are written. */
  readonly unions: 'type-list' | 'anyOf' | 'nullable'
  /** Which values an `enum` may have. */
  readonly enums?: 'scalars' | 'texts'
  /** Whether `enum` and `const` are written without a type. */
  readonly untypedEnums?: boolean
  /** Whether every object must be closed: `additionalProperties: false`. */
  readonly closed?: boolean
  /** Whether every property must be required. An optional property then allows null. */
  readonly allRequired?: boolean
  /** Whether every schema must have a type, and every list `items`. */
  readonly typed?: boolean
  /** Whether every list must have `items`, even if `{}`. */
  readonly itemsNeeded?: boolean
  /** The supported values of `minItems`. */
  readonly minItems?: ReadonlySet<number>
  /** The names that parameters may have. */
  readonly parameterName?: RegExp
  readonly limits?: Limits
  /** Whether the schema is written as OpenAPI 3.0: types in capitals, counts as texts. */
  readonly openApi?: boolean
}

/** The limits of a schema. */
export interface Limits {
  readonly properties?: number
  readonly optionalProperties?: number
  readonly depth?: number
  readonly enumValues?: number
  /** Characters of all names and enum values. */
  readonly textLength?: number
  /** Characters of an enum that has more than 250 values. */
  readonly longEnumLength?: number
}

const ROOT_UNIONS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf'])
const ANTHROPIC_PARAMETER = /^[A-Za-z0-9_.-]{1,64}$/
const GEMINI_PARAMETER = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/

const STRICT_WORDS = '$ref type title description enum const format anyOf properties required additionalProperties'
const NUMBER_WORDS = 'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'

/** All of JSON Schema 2020-12, at the root too: MCP. */
export const ANY: TargetDialect = { name: 'any', objectRoot: true, refs: 'kept', unions: 'type-list' }

/** Output schemas for targets that accept all of JSON Schema. */
export const ANY_OUTPUT: TargetDialect = { ...ANY, name: 'any-output', objectRoot: false }

/** JSON Schema with a single object at the root, which every provider accepts. */
export const FLAT: TargetDialect = { ...ANY, name: 'flat', rootLacks: ROOT_UNIONS }

/** Like FLAT, because the provider behind a framework is unknown and may be OpenAI. */
export const FRAMEWORK: TargetDialect = { ...FLAT, name: 'framework', itemsNeeded: true }

export const ANTHROPIC: TargetDialect = { ...FLAT, name: 'anthropic', parameterName: ANTHROPIC_PARAMETER }

/** The message of its 400: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". */
export const OPENAI: TargetDialect = {
  ...FLAT,
  name: 'openai',
  rootLacks: new Set([...ROOT_UNIONS, 'enum', 'not']),
  itemsNeeded: true,
}

export const OPENAI_STRICT: TargetDialect = {
  name: 'openai-strict',
  keywords: words(STRICT_WORDS, NUMBER_WORDS, 'pattern items minItems maxItems'),
  rootLacks: new Set([...ROOT_UNIONS, 'enum', 'const']),
  formats: new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']),
  objectRoot: true,
  refs: 'kept',
  bareRefs: true,
  bareAnyOf: true,
  unions: 'type-list',
  enums: 'scalars',
  closed: true,
  allRequired: true,
  typed: true,
  limits: {
    properties: 5000,
    depth: 10,
    enumValues: 1000,
    textLength: 120_000,
    longEnumLength: 15_000,
  },
}

export const ANTHROPIC_STRICT: TargetDialect = {
  name: 'anthropic-strict',
  keywords: words(STRICT_WORDS, 'items minItems'),
  rootLacks: new Set([...ROOT_UNIONS, 'enum', 'const']),
  formats: new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']),
  objectRoot: true,
  refs: 'kept',
  bareRefs: true,
  bareAnyOf: true,
  unions: 'anyOf',
  enums: 'scalars',
  untypedEnums: true,
  closed: true,
  typed: true,
  minItems: new Set([0, 1]),
  parameterName: ANTHROPIC_PARAMETER,
}

/** Like Anthropic's, without recursive references. */
export const BEDROCK_STRICT: TargetDialect = {
  ...ANTHROPIC_STRICT,
  name: 'bedrock-strict',
  refs: 'inlined',
  limits: { optionalProperties: 10 },
}

/** The keywords that the documentation of `responseJsonSchema` lists; `parametersJsonSchema` is read by the same code. */
export const GEMINI: TargetDialect = {
  name: 'gemini',
  keywords: words(
    '$ref type format title description enum anyOf minimum maximum properties required additionalProperties',
    'prefixItems items minItems maxItems',
  ),
  rootLacks: new Set([...ROOT_UNIONS, 'enum']),
  objectRoot: true,
  refs: 'kept',
  bareRefs: true,
  recursion: 'in-optional',
  unions: 'type-list',
  enums: 'scalars',
  parameterName: GEMINI_PARAMETER,
}

export const GEMINI_OUTPUT: TargetDialect = withoutParameters({ ...GEMINI, name: 'gemini-output' })

/** The message `Schema`. An unknown field is an error for the whole request. */
export const GEMINI_OPENAPI: TargetDialect = {
  name: 'gemini-openapi',
  keywords: words(
    'type format title description default enum anyOf minimum maximum pattern minLength maxLength nullable',
    'properties required minProperties maxProperties items minItems maxItems',
  ),
  rootLacks: new Set([...ROOT_UNIONS, 'enum']),
  objectRoot: true,
  refs: 'inlined',
  bareAnyOf: true,
  unions: 'nullable',
  enums: 'texts',
  typed: true,
  parameterName: GEMINI_PARAMETER,
  openApi: true,
}

export const GEMINI_OPENAPI_OUTPUT: TargetDialect = withoutParameters({
  ...GEMINI_OPENAPI,
  name: 'gemini-openapi-output',
})

/** Returns whether a dialect accepts a keyword at a place. */
export function takes(dialect: TargetDialect, keyword: string, atRoot: boolean): boolean {
  if (atRoot && dialect.rootLacks?.has(keyword)) return false
  return dialect.keywords ? dialect.keywords.has(keyword) : true
}

/** Returns whether JSON Schema 2020-12 has a keyword. */
export function isKnown(keyword: string): boolean {
  return KEYWORDS.has(keyword)
}

/** A function may return any value, with fields of any name. */
function withoutParameters(dialect: TargetDialect): TargetDialect {
  const { parameterName: _, rootLacks: __, ...rest } = dialect
  return { ...rest, objectRoot: false }
}

function words(...texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.join(' ').split(' '))
}

const LONG_ENUM = 250

const WORDS: Readonly<Record<keyof Limits, string>> = {
  properties: 'properties',
  optionalProperties: 'optional properties',
  depth: 'levels of objects',
  enumValues: 'enum values',
  textLength: 'characters of names and enum values',
  longEnumLength: 'characters in one enum',
}

/** Returns the limit that a schema exceeds, with its size, or `undefined`. */
export function overLimit(schema: JsonSchema, limits: Limits): string | undefined {
  const size = measure(schema)
  const over = (Object.keys(WORDS) as (keyof Limits)[]).find((key) => size[key] > (limits[key] ?? Infinity))
  return over && `${size[over]} ${WORDS[over]}, at most ${limits[over]}`
}

/** Counts the parts of a schema in its original form. */
function measure(schema: JsonSchema): Record<keyof Limits, number> {
  const size = { properties: 0, optionalProperties: 0, depth: 0, enumValues: 0, textLength: 0, longEnumLength: 0 }

  const visit = (value: unknown, outer: number): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, outer)
    if (!isObject(value)) return
    const properties = keysOf(value['properties'])
    const required = listOf(value['required'])
    const listed = [...listOf(value['enum']), ...('const' in value ? [value['const']] : [])].map(String)
    const depth = [value['type']].flat().includes('object') ? outer + 1 : outer
    const names = [...properties, ...keysOf(value['$defs'])]
    size.properties += properties.length
    size.optionalProperties += properties.filter((name) => !required.includes(name)).length
    size.depth = Math.max(size.depth, depth)
    size.enumValues += listed.length
    size.textLength += [...names, ...listed].join('').length
    if (listed.length > LONG_ENUM) size.longEnumLength = Math.max(size.longEnumLength, listed.join('').length)
    for (const keyword of ['items', 'anyOf']) visit(value[keyword], depth)
    for (const keyword of ['properties', '$defs']) {
      if (isObject(value[keyword])) for (const item of Object.values(value[keyword])) visit(item, depth)
    }
  }
  visit(schema, 0)
  return size
}

function keysOf(value: unknown): readonly string[] {
  return isObject(value) ? Object.keys(value) : []
}
