/** A whole schema has at most so many levels of schemas inside schemas. */
export const MAX_SCHEMA_DEPTH = 32
/** UTF-8 bytes of its canonical form. */
export const MAX_SCHEMA_BYTES = 64 * 1024

/** `$schema` of the drafts that are read as draft-07; any other, or none, is read as 2020-12. */
export const DRAFT_07: RegExp = /^https?:\/\/json-schema\.org\/draft-0[467]\/schema#?$/

/** What cannot be used of a schema, and where: an RFC 6901 pointer. */
export interface SchemaProblem {
  readonly pointer: string
  readonly message: string
}

/**
 * Finds why a document is no JSON Schema (draft-07 or 2020-12) that the gate takes, if there is a reason.
 *
 * A `$ref` must stay inside the document and lead somewhere: nothing remote is ever fetched. It may lead back to where
 * it stands. Keywords that the drafts do not know are annotations.
 */
export function findSchemaProblem(schema: object): SchemaProblem | undefined {
  // Plain JSON has as many bytes in its canonical form as here: only the order of keys differs.
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MAX_SCHEMA_BYTES)
    return { pointer: '', message: `has ${bytes} bytes; at most ${MAX_SCHEMA_BYTES} are allowed` }
  const isDraft07 = DRAFT_07.test(String((schema as { $schema?: unknown }).$schema))
  return findIn(schema, { pointer: '', depth: 1, resource: schema, isDraft07 })
}

interface Place {
  readonly pointer: string
  readonly depth: number
  /** The document, or the part of it with an `$id` of its own, which its references are relative to. */
  readonly resource: object
  readonly isDraft07: boolean
}

type Find = (value: unknown, place: Place) => SchemaProblem | undefined

function findIn(schema: unknown, place: Place): SchemaProblem | undefined {
  if (typeof schema === 'boolean') return undefined
  if (!isObject(schema)) return problem(place, 'must be a schema: an object, true or false')
  if (place.depth > MAX_SCHEMA_DEPTH) return problem(place, `is nested more than ${MAX_SCHEMA_DEPTH} levels deep`)
  const resource = isEmbedded(schema, place) ? schema : place.resource
  for (const [keyword, value] of Object.entries(schema)) {
    const found = KEYWORDS.get(keyword)?.(value, { ...below(place, keyword), resource })
    if (found) return found
  }
  return undefined
}

function isEmbedded({ $id }: Readonly<Record<string, unknown>>, { depth }: Place): boolean {
  return depth > 1 && typeof $id === 'string' && !$id.startsWith('#')
}

const schema: Find = (value, place) => findIn(value, { ...place, depth: place.depth + 1 })

const schemas: Find = (value, place) =>
  Array.isArray(value) && value.length > 0
    ? firstOf(value.entries(), (item, i) => schema(item, below(place, i)))
    : problem(place, 'must be a list of schemas that is not empty')

const schemaMap: Find = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => schema(item, below(place, name)))
    : problem(place, 'must be an object of schemas')

/** Draft-07: a schema, or the names of properties. */
const dependencies: Find = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => (Array.isArray(item) ? names : schema)(item, below(place, name)))
    : problem(place, 'must be an object')

const nameMap: Find = (value, place) =>
  isObject(value)
    ? firstOf(Object.entries(value), (item, name) => names(item, below(place, name)))
    : problem(place, 'must be an object of lists of names')

/** Draft-07 may have a list here, which 2020-12 calls `prefixItems`. */
const items: Find = (value, place) => (place.isDraft07 && Array.isArray(value) ? schemas : schema)(value, place)

const TYPES: readonly unknown[] = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']

const types: Find = (value, place) => {
  const list = Array.isArray(value) ? value : [value]
  const wrong = list.find((type) => !TYPES.includes(type))
  if (list.length === 0 || wrong !== undefined || new Set(list).size < list.length)
    return problem(place, `must be one of ${TYPES.join(', ')}, or a list of them`)
  return undefined
}

const names = expects('must be a list of different names', isNames)
const count = expects(
  'must be a whole number that is not negative',
  (value) => Number.isInteger(value) && (value as number) >= 0,
)
const number = expects('must be a number', (value) => typeof value === 'number')
const text = expects('must be a string', (value) => typeof value === 'string')
const flag = expects('must be true or false', (value) => typeof value === 'boolean')
const choices = expects('must be a list that is not empty', (value) => Array.isArray(value) && value.length > 0)
const list = expects('must be a list', Array.isArray)

/** Only a reference inside the document is followed. */
const reference: Find = (value, place) => {
  if (typeof value !== 'string') return problem(place, 'must be a string')
  if (!value.startsWith('#'))
    return problem(place, `is ${told(value)}, outside this schema; only references that begin with # are allowed`)
  return leadsSomewhere(value, place.resource)
    ? undefined
    : problem(place, `is ${told(value)}, which is not in this schema`)
}

const KEYWORDS: ReadonlyMap<string, Find> = new Map<string, Find>([
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
  ['enum', choices],
  ['examples', list],
  ...each(
    'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'.split(' '),
    count,
  ),
  ...each(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'], number),
  ['multipleOf', expects('must be a number above 0', (value) => typeof value === 'number' && value > 0)],
  ...each(
    ['$schema', '$id', '$anchor', '$dynamicAnchor', '$comment', 'title', 'description', 'format', 'pattern'],
    text,
  ),
  ...each(['uniqueItems', 'readOnly', 'writeOnly', 'deprecated'], flag),
])

function each(keywords: readonly string[], find: Find): [string, Find][] {
  return keywords.map((keyword) => [keyword, find])
}

function expects(message: string, passes: (value: unknown) => boolean): Find {
  return (value, place) => (passes(value) ? undefined : problem(place, message))
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') && new Set(value).size === value.length
}

/** RFC 6901 in the fragment of a URI, or the name of an anchor. */
function leadsSomewhere(ref: string, resource: object): boolean {
  const fragment = decode(ref.slice(1))
  if (fragment === undefined) return false
  if (fragment === '') return true
  if (!fragment.startsWith('/')) return anchorsOf(resource).has(fragment)
  let at: unknown = resource
  for (const step of fragment.slice(1).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false
    at = (at as Record<string, unknown>)[key]
  }
  return isObject(at) || typeof at === 'boolean'
}

const anchors = new WeakMap<object, ReadonlySet<string>>()

/** Collected once for each document: a schema may refer a thousand times. */
function anchorsOf(resource: object): ReadonlySet<string> {
  let known = anchors.get(resource)
  if (!known) anchors.set(resource, (known = new Set(collectAnchors(resource))))
  return known
}

function* collectAnchors(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  const { $anchor, $dynamicAnchor, $id } = value as Record<string, unknown>
  if (typeof $anchor === 'string') yield $anchor
  if (typeof $dynamicAnchor === 'string') yield $dynamicAnchor
  if (typeof $id === 'string' && $id.startsWith('#')) yield $id.slice(1)
  for (const item of Object.values(value)) yield* collectAnchors(item)
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}

function firstOf<K>(
  entries: Iterable<[K, unknown]>,
  find: (value: unknown, key: K) => SchemaProblem | undefined,
): SchemaProblem | undefined {
  for (const [key, value] of entries) {
    const found = find(value, key)
    if (found) return found
  }
  return undefined
}

function below(place: Place, key: string | number): Place {
  return { ...place, pointer: `${place.pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}` }
}

function problem({ pointer }: Place, message: string): SchemaProblem {
  return { pointer: pointer.slice(0, 200), message }
}

function told(ref: string): string {
  return JSON.stringify(ref.length > 100 ? `${ref.slice(0, 100)}…` : ref)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
