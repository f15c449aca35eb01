import { escapePointer, type JsonObject, toJsonText } from '@toolgate/values/json'
import {
  createReferences,
  dialectOf,
  type Draft,
  isNumber,
  isUntil,
  type References,
} from '@toolgate/values/json-schema'

/** The deepest nesting of schemas in a schema. */
export const MAX_SCHEMA_DEPTH = 32
/** The largest schema, in UTF-8 bytes of the canonical form. */
export const MAX_SCHEMA_BYTES = 64 * 1024

/** A problem of a schema, with its place as an RFC 6901 pointer. */
interface ToolSchemaProblem {
  readonly pointer: string
  readonly message: string
}

/**
 * Returns the first problem of a JSON Schema (draft-04 to 2020-12); `undefined` if the schema is valid.
 *
 * A `$ref` must refer to a part of the document or to a meta-schema of a draft, because nothing remote is fetched. It may
 * be recursive. An empty `enum` is valid and matches no value. Unknown keywords are annotations.
 */
export function findSchemaProblem(schema: object): ToolSchemaProblem | undefined {
  // The canonical form of plain JSON has the same size, because only the order of keys differs.
  const bytes = Buffer.byteLength(toJsonText(schema))
  if (bytes > MAX_SCHEMA_BYTES)
    return { pointer: '', message: `has ${bytes} bytes; at most ${MAX_SCHEMA_BYTES} are allowed` }
  const { draft } = dialectOf(schema)
  const references = createReferences(schema, draft)
  const [checked, referred] = [new Set<object>(), new Map<object, string>()]
  const place: SchemaPlace = { pointer: '', depth: 1, from: schema, draft, references, checked, referred }
  const found = findIn(schema, place)
  if (found) return found
  // A reference may lead to a schema that stands under no keyword. The map grows during the loop.
  for (const [target, pointer] of referred) {
    const problemThere = checked.has(target)
      ? undefined
      : findIn(target, { ...place, pointer, draft: references.draftOf(target) })
    if (problemThere) return problemThere
  }
  return undefined
}

interface SchemaPlace {
  readonly pointer: string
  readonly depth: number
  /** The schema that the keyword is in. */
  readonly from: object
  readonly draft: Draft
  readonly references: References
  /** The schemas that were checked. */
  readonly checked: Set<object>
  /** The schemas that references lead to, each with the pointer of one reference. */
  readonly referred: Map<object, string>
}

type FindProblem = (value: unknown, place: SchemaPlace) => ToolSchemaProblem | undefined

function findIn(schema: unknown, place: SchemaPlace): ToolSchemaProblem | undefined {
  if (typeof schema === 'boolean') return undefined
  if (!isObject(schema)) return problem(place, 'must be a schema: an object, true or false')
  if (place.depth > MAX_SCHEMA_DEPTH) return problem(place, `is nested more than ${MAX_SCHEMA_DEPTH} levels deep`)
  place.checked.add(schema)
  for (const [keyword, value] of Object.entries(schema)) {
    const found = KEYWORDS.get(keyword)?.(value, { ...below(place, keyword), from: schema })
    if (found) return found
  }
  return undefined
}

const schema: FindProblem = (value, place) => findIn(value, { ...place, depth: place.depth + 1 })

const schemas: FindProblem = (value, place) =>
  Array.isArray(value) && value.length > 0
    ? firstOf(value.entries(), (item, i) => schema(item, below(place, i)))
    : problem(place, 'must be a list of schemas that is not empty')

const schemaMap: FindProblem = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => schema(item, below(place, name)))
    : problem(place, 'must be an object of schemas')

/** Draft-07: a schema, or the names of properties. */
const dependencies: FindProblem = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => (Array.isArray(item) ? names : schema)(item, below(place, name)))
    : problem(place, 'must be an object')

const nameMap: FindProblem = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => names(item, below(place, name)))
    : problem(place, 'must be an object of lists of names')

/** Drafts before 2020-12 allow a list here; 2020-12 calls it `prefixItems`. */
const items: FindProblem = (value, place) =>
  (Array.isArray(value) && isUntil(place.draft, '2019-09') ? schemas : schema)(value, place)

const TYPES: readonly unknown[] = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']

const types: FindProblem = (value, place) => {
  const list = Array.isArray(value) ? value : [value]
  const wrong = list.find((type) => !TYPES.includes(type))
  if (list.length === 0 || wrong !== undefined || new Set(list).size < list.length)
    return problem(place, `must be one of ${TYPES.join(', ')}, or a list of them`)
  return undefined
}

const names = expects('must be a list of different names', isNames)
const count = expects(
  'must be a whole number that is not negative',
  (value) => isNumber(value) && value >= 0 && (typeof value === 'bigint' || Number.isInteger(value)),
)
const number = expects('must be a number', isNumber)
/** In draft-04 this is `true`, and the limit is in another keyword. */
const exclusive: FindProblem = (value, place) =>
  (place.draft === 'draft-04' || (place.draft === 'unnamed' && typeof value === 'boolean') ? flag : number)(
    value,
    place,
  )
const text = expects('must be a string', (value) => typeof value === 'string')
const flag = expects('must be true or false', (value) => typeof value === 'boolean')
const list = expects('must be a list', Array.isArray)

/** Only a reference inside the document is followed. */
const reference: FindProblem = (value, place) => {
  if (typeof value !== 'string') return problem(place, 'must be a string')
  const targets = place.references.find(value, place.from)
  if (targets.length === 0 && !value.startsWith('#'))
    return problem(place, `is ${told(value)}, outside this schema; nothing is fetched`)
  if (targets.length === 0) return problem(place, `is ${told(value)}, which is not in this schema`)
  for (const target of targets)
    if (typeof target === 'object' && !place.referred.has(target)) place.referred.set(target, place.pointer)
  return undefined
}

const KEYWORDS: ReadonlyMap<string, FindProblem> = new Map<string, FindProblem>([
  ...each(['$ref', '$dynamicRef', '$recursiveRef'], reference),
  ...each(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'], schemaMap),
  ...each(['allOf', 'anyOf', 'oneOf', 'prefixItems'], schemas),
  ...each(
    'additionalProperties propertyNames unevaluatedProperties additionalItems unevaluatedItems contains not if then else'.split(
      ' ',
    ),
    schema,
  ),
  ['items', items],
  ['dependencies', dependencies],
  ['dependentRequired', nameMap],
  ['required', names],
  ['type', types],
  ...each(['enum', 'examples'], list),
  ...each(
    'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'.split(' '),
    count,
  ),
  ...each(['minimum', 'maximum'], number),
  ...each(['exclusiveMinimum', 'exclusiveMaximum'], exclusive),
  ['multipleOf', expects('must be a number above 0', (value) => isNumber(value) && value > 0)],
  ...each(
    ['$schema', '$id', '$anchor', '$dynamicAnchor', '$comment', 'title', 'description', 'format', 'pattern'],
    text,
  ),
  ...each(['uniqueItems', 'readOnly', 'writeOnly', 'deprecated'], flag),
])

/** Keywords with a schema for each name, and keywords with one schema or a list of schemas. */
const MAPS: ReadonlySet<FindProblem> = new Set([schemaMap, dependencies])
const INNER: ReadonlySet<FindProblem> = new Set([schema, schemas, items])

/**
 * Returns a schema without known keywords that are `null`. No known keyword can be `null`, so such a keyword is another
 * spelling of an absent one. Data, such as `default` and `const`, stays. Returns the same object if nothing is left out.
 */
export function withoutNullKeywords(given: JsonObject, depth = 1): JsonObject {
  let mended: Record<string, unknown> | undefined
  for (const [keyword, find] of KEYWORDS) {
    if (!Object.hasOwn(given, keyword)) continue
    const value = given[keyword]
    const kept = value === null ? undefined : depth > MAX_SCHEMA_DEPTH ? value : mendInner(value, find, depth)
    if (kept === value) continue
    mended ??= { ...given }
    if (kept === undefined) delete mended[keyword]
    else mended[keyword] = kept
  }
  return mended ?? given
}

function mendInner(value: unknown, find: FindProblem, depth: number): unknown {
  if (isObject(value) && MAPS.has(find)) return mendEach(value, depth)
  if (!INNER.has(find)) return value
  if (isObject(value)) return withoutNullKeywords(value, depth + 1)
  if (!Array.isArray(value)) return value
  const mended = value.map((item: unknown) => (isObject(item) ? withoutNullKeywords(item, depth + 1) : item))
  return mended.some((item, i) => item !== value[i]) ? mended : value
}

function mendEach(map: JsonObject, depth: number): JsonObject {
  const entries = Object.entries(map).map(([name, item]): [string, unknown] => [
    name,
    isObject(item) ? withoutNullKeywords(item, depth + 1) : item,
  ])
  return entries.some(([name, item]) => item !== map[name]) ? Object.fromEntries(entries) : map
}

function each(keywords: readonly string[], find: FindProblem): [string, FindProblem][] {
  return keywords.map((keyword) => [keyword, find])
}

function expects(message: string, passes: (value: unknown) => boolean): FindProblem {
  return (value, place) => (passes(value) ? undefined : problem(place, message))
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') && new Set(value).size === value.length
}

function firstOf<K>(
  entries: Iterable<[K, unknown]>,
  find: (value: unknown, key: K) => ToolSchemaProblem | undefined,
): ToolSchemaProblem | undefined {
  for (const [key, value] of entries) {
    const found = find(value, key)
    if (found) return found
  }
  return undefined
}

function below(place: SchemaPlace, key: string | number): SchemaPlace {
  return { ...place, pointer: `${place.pointer}/${escapePointer(String(key))}` }
}

function problem({ pointer }: SchemaPlace, message: string): ToolSchemaProblem {
  return { pointer: pointer.slice(0, 200), message }
}

function told(ref: string): string {
  return JSON.stringify(ref.length > 100 ? `${ref.slice(0, 100)}…` : ref)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
