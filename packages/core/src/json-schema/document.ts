import { escapePointer, isObject, type JsonObject, unescapePointer } from '../util/json.ts'

/** The drafts of JSON Schema, oldest first. */
export const DRAFTS = ['draft-04', 'draft-06', 'draft-07', '2019-09', '2020-12'] as const
export type Draft = (typeof DRAFTS)[number]

/** Values of `$schema`, without `http://` or `https://` and without a `#` at the end. */
const META_SCHEMAS: ReadonlyMap<string, Draft> = new Map([
  ['json-schema.org/draft-04/schema', 'draft-04'],
  ['json-schema.org/draft-06/schema', 'draft-06'],
  ['json-schema.org/draft-07/schema', 'draft-07'],
  ['json-schema.org/draft/2019-09/schema', '2019-09'],
  ['json-schema.org/draft/2020-12/schema', '2020-12'],
  ['json-schema.org/schema', '2020-12'],
])
const DEFAULT: Draft = '2020-12'

export interface Dialect {
  readonly draft: Draft
  /** Whether `$schema` names this draft or is absent. */
  readonly isKnown: boolean
}

/** Returns the draft by which a document is read: 2020-12 if it names none, or an unknown one. */
export function dialectOf(document: object): Dialect {
  const $schema = '$schema' in document ? document.$schema : undefined
  if (typeof $schema !== 'string') return { draft: DEFAULT, isKnown: true }
  const draft = META_SCHEMAS.get($schema.replace(/^https?:\/\//, '').replace(/#$/, ''))
  return { draft: draft ?? DEFAULT, isKnown: draft !== undefined }
}

/** Whether a draft is at least as new as another. */
export function isSince(draft: Draft, oldest: Draft): boolean {
  return DRAFTS.indexOf(draft) >= DRAFTS.indexOf(oldest)
}

/** Returns the keyword that names a schema within its document. */
export function idKeyword(draft: Draft): '$id' | 'id' {
  return draft === 'draft-04' ? 'id' : '$id'
}

/** The targets of references within a document. */
export interface References {
  /** Returns the document, or the part with an `$id` of its own, to which an object's references are relative. */
  resourceOf(schema: object): object
  /** Returns the schema to which a reference that begins with `#` leads. */
  find(reference: string, from: object): object | boolean | undefined
  /** Returns the schema of a resource that has this `$dynamicAnchor`. */
  findDynamic(name: string, resource: object): object | undefined
  /** How many resources the document has. */
  readonly resources: number
}

interface Resource {
  readonly anchors: Map<string, object>
  readonly dynamicAnchors: Map<string, object>
}

export function createReferences(document: object, draft: Draft): References {
  const id = idKeyword(draft)
  const owners = new Map<object, object>()
  const resources = new Map<object, Resource>()
  const anywhere = new Map<string, object>()
  index(document, document)

  function index(value: object, within: object): void {
    const { [id]: own, $anchor, $dynamicAnchor }: JsonObject = isObject(value) ? value : {}
    const begins = value === document || (typeof own === 'string' && !own.startsWith('#'))
    const resource = begins ? value : within
    owners.set(value, resource)
    let known = resources.get(resource)
    if (!known) resources.set(resource, (known = { anchors: new Map(), dynamicAnchors: new Map() }))
    const fragment = typeof own === 'string' && own.startsWith('#') ? own.slice(1) : undefined
    for (const name of [$anchor, $dynamicAnchor, fragment]) {
      if (typeof name !== 'string') continue
      known.anchors.set(name, value)
      anywhere.set(name, value)
    }
    if (typeof $dynamicAnchor === 'string') known.dynamicAnchors.set($dynamicAnchor, value)
    for (const item of Object.values(value)) if (typeof item === 'object' && item !== null) index(item, resource)
  }

  return {
    resources: resources.size,
    resourceOf: (schema) => owners.get(schema) ?? document,
    findDynamic: (name, resource) => resources.get(resource)?.dynamicAnchors.get(name),
    find(reference, from) {
      const resource = owners.get(from) ?? document
      const fragment = decode(reference.slice(1))
      if (fragment === undefined) return undefined
      if (fragment === '') return resource
      if (!fragment.startsWith('/')) return resources.get(resource)?.anchors.get(fragment) ?? anywhere.get(fragment)
      return follow(fragment, resource)
    },
  }
}

/** Follows a JSON pointer in the fragment of a URI (RFC 6901 §6). */
function follow(pointer: string, resource: object): object | boolean | undefined {
  let at: unknown = resource
  for (const step of pointer.slice(1).split('/')) {
    const key = unescapePointer(step)
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = Reflect.get(at, key)
  }
  return typeof at === 'boolean' || isObject(at) ? at : undefined
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}

/** A schema inside another. */
export interface Subschema {
  readonly pointer: string
  readonly schema: JsonObject
  /** Whether it applies to the same value, not to a part of it. */
  readonly inPlace: boolean
}

type Shape = 'one' | 'list' | 'map'

interface Row {
  readonly shapes: readonly Shape[]
  readonly inPlace?: boolean
  readonly since?: Draft
  readonly until?: Draft
}

/** The keywords that contain schemas. */
const ROWS: ReadonlyMap<string, Row> = new Map<string, Row>([
  ['properties', { shapes: ['map'] }],
  ['patternProperties', { shapes: ['map'] }],
  ['additionalProperties', { shapes: ['one'] }],
  ['propertyNames', { shapes: ['one'], since: 'draft-06' }],
  ['items', { shapes: ['one', 'list'] }],
  ['additionalItems', { shapes: ['one'], until: '2019-09' }],
  ['prefixItems', { shapes: ['list'], since: '2020-12' }],
  ['contains', { shapes: ['one'], since: 'draft-06' }],
  ['unevaluatedItems', { shapes: ['one'], since: '2019-09' }],
  ['unevaluatedProperties', { shapes: ['one'], since: '2019-09' }],
  ['allOf', { shapes: ['list'], inPlace: true }],
  ['anyOf', { shapes: ['list'], inPlace: true }],
  ['oneOf', { shapes: ['list'], inPlace: true }],
  ['not', { shapes: ['one'], inPlace: true }],
  ['if', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['then', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['else', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['dependencies', { shapes: ['map'], inPlace: true }],
  ['dependentSchemas', { shapes: ['map'], inPlace: true, since: '2019-09' }],
])

/** Returns the schemas that a schema applies, with their pointers. Definitions are applied only through references. */
export function* subschemasOf(schema: JsonObject, pointer: string, draft: Draft): Generator<Subschema> {
  for (const [keyword, value] of Object.entries(schema)) {
    const row = ROWS.get(keyword)
    if (!row || (row.since && !isSince(draft, row.since)) || (row.until && !isSince(row.until, draft))) continue
    for (const [path, inner] of innerOf(value, row.shapes))
      if (isObject(inner))
        yield { pointer: `${pointer}/${keyword}${path}`, schema: inner, inPlace: row.inPlace ?? false }
  }
}

function innerOf(value: unknown, shapes: readonly Shape[]): readonly (readonly [path: string, schema: unknown])[] {
  if (Array.isArray(value)) return shapes.includes('list') ? value.map((item, i) => [`/${i}`, item]) : []
  if (!shapes.includes('map')) return [['', value]]
  return isObject(value) ? Object.entries(value).map(([key, item]) => [`/${escapePointer(key)}`, item]) : []
}
