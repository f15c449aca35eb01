import { escapePointer, isObject, type JsonObject, unescapePointer } from '../json/json.ts'
import { type Draft, DRAFTS, draftOfUri, keyOf, metaSchemasOf } from './drafts.ts'

const DEFAULT: Draft = 'unnamed'

export interface Dialect {
  readonly draft: Draft
  /** Whether `$schema` names this draft or is absent. */
  readonly isKnown: boolean
}

/** Returns the draft of a document: `unnamed` if it names none, or an unknown one. */
export function dialectOf(document: object): Dialect {
  const $schema = '$schema' in document ? document.$schema : undefined
  if (typeof $schema !== 'string') return { draft: DEFAULT, isKnown: true }
  const draft = draftOfUri($schema)
  return { draft: draft ?? DEFAULT, isKnown: draft !== undefined }
}

/** Returns whether a draft is at least as new as another. */
export function isSince(draft: Draft, oldest: Draft): boolean {
  return DRAFTS.indexOf(draft) >= DRAFTS.indexOf(oldest)
}

/** Returns whether a draft is not newer than `last`, and so still has its keywords and forms. */
export function isUntil(draft: Draft, last: Draft): boolean {
  return draft === 'unnamed' || isSince(last, draft)
}

/** Returns the keyword that names a schema within its document. */
export function idKeyword(draft: Draft): '$id' | 'id' {
  return draft === 'draft-04' ? 'id' : '$id'
}

/** The targets of references within a document. */
export interface References {
  /** Returns the document, or the part with an `$id` of its own, to which an object's references are relative. */
  resourceOf(schema: object): object
  /** Returns the draft of a schema: the draft of its document, or of the meta-schema that contains it. */
  draftOf(schema: object): Draft
  /**
   * Returns the schemas that a reference refers to: by a pointer, an anchor, or an `$id` of the document itself (§8.2) or
   * of a meta-schema. It returns two if drafts differ and the document names none; an input must then pass both.
   */
  find(reference: string, from: object): readonly (object | boolean)[]
  /** Returns the schema of a resource that has this `$dynamicAnchor`. */
  findDynamic(name: string, resource: object): object | undefined
  /** The number of resources in the document. */
  readonly resources: number
}

interface Resource {
  /** The base URI. It is never requested. */
  readonly uri: string
  readonly anchors: Map<string, object>
  readonly dynamicAnchors: Map<string, object>
  /** The resource that contains it. */
  readonly outer: object
  readonly draft: Draft
}

const ROOT = 'https://schema.invalid/'
/** The longest URI that is resolved. */
const MAX_URI = 1000
/** A part of a document. `$id` and anchors are names only in schemas. */
type DocumentPart = 'schema' | 'map of schemas' | 'data'

export function createReferences(document: object, draft: Draft): References {
  return new DocumentReferences(document, draft)
}

class DocumentReferences implements References {
  readonly #document: object
  readonly #draft: Draft
  readonly #owners = new Map<object, object>()
  readonly #resources = new Map<object, Resource>()
  readonly #byUri = new Map<string, object>()
  readonly #anywhere = new Map<string, object>()
  readonly #elsewhere = new Set<string>()

  constructor(document: object, draft: Draft) {
    this.#document = document
    this.#draft = draft
    this.#index(document, document, 'schema')
    // The set grows during the loop, because a meta-schema refers to its vocabularies.
    for (const uri of this.#elsewhere) this.#addMetaSchemas(uri)
  }

  get resources(): number {
    return this.#resources.size
  }

  resourceOf(schema: object): object {
    return this.#owners.get(schema) ?? this.#document
  }

  draftOf(schema: object): Draft {
    return this.#resources.get(this.resourceOf(schema))?.draft ?? this.#draft
  }

  findDynamic(name: string, resource: object): object | undefined {
    return this.#resources.get(resource)?.dynamicAnchors.get(name)
  }

  #index(value: object, within: object, part: DocumentPart): void {
    const schema: JsonObject = part === 'schema' && isObject(value) ? value : {}
    const outer = this.#resources.get(within)
    const own = idOf(schema, outer?.draft ?? this.#draft)
    const begins = value === this.#document || (own !== undefined && !own.startsWith('#'))
    const resource = begins ? value : within
    this.#owners.set(value, resource)
    if (begins) this.#addResource(value, own, within, { uri: ROOT, draft: this.#draft, ...outer })
    this.#addNames(value, schema, this.#resources.get(resource) as Resource)
    for (const [key, item] of Object.entries(value))
      if (typeof item === 'object' && item !== null) this.#index(item, resource, partAt(key, value, part))
      else if (key === '$ref' && typeof item === 'string') this.#noteElsewhere(item, resource)
  }

  #noteElsewhere(reference: string, resource: object): void {
    const base = this.#resources.get(resource)?.uri ?? ROOT
    if (!reference.startsWith('#') && (reference + base).includes('json-schema.org/'))
      this.#elsewhere.add(toUri(reference, base)?.resource ?? '')
  }

  #addMetaSchemas(uri: string): void {
    const found = this.#byUri.has(uri) ? undefined : metaSchemasOf(uri)
    for (const [key, meta] of found?.documents ?? []) {
      if (this.#byUri.has(key)) continue
      this.#byUri.set(key, meta)
      const own = String(Reflect.get(meta, idKeyword(found?.draft ?? this.#draft)))
      this.#addResource(meta, own, meta, { uri: ROOT, draft: found?.draft ?? this.#draft })
      this.#index(meta, meta, 'schema')
    }
  }

  #addResource(
    value: object,
    own: string | undefined,
    outer: object,
    { uri: base, draft: of }: Pick<Resource, 'uri' | 'draft'>,
  ): void {
    if (this.#resources.has(value)) return
    const uri = (own === undefined ? undefined : toUri(own, base)?.resource) ?? base
    this.#resources.set(value, { uri, anchors: new Map(), dynamicAnchors: new Map(), outer, draft: of })
    if (own !== undefined && !this.#byUri.has(uri)) this.#byUri.set(uri, value)
  }

  #addNames(value: object, schema: JsonObject, { anchors, dynamicAnchors, draft: of }: Resource): void {
    const { $anchor, $dynamicAnchor } = schema
    const fragments = [schema[idKeyword(of)], of === 'unnamed' ? schema['id'] : undefined].map((own) =>
      typeof own === 'string' ? (/#(.+)/s.exec(own)?.[1] ?? undefined) : undefined,
    )
    for (const name of [$anchor, $dynamicAnchor, ...fragments]) {
      if (typeof name !== 'string') continue
      anchors.set(name, value)
      if (of === this.#draft) this.#anywhere.set(name, value)
    }
    if (typeof $dynamicAnchor === 'string') dynamicAnchors.set($dynamicAnchor, value)
  }

  find(reference: string, from: object): readonly (object | boolean)[] {
    const owner = this.#owners.get(from) ?? this.#document
    const target = this.#findFrom(owner, reference)
    const { outer, draft: of } = this.#resources.get(owner) ?? {}
    // Up to draft-07 an `$id` beside a `$ref` does not change the base of the reference.
    const isDoubtful = owner === from && of === 'unnamed' && outer !== undefined && outer !== owner && '$ref' in from
    const older = isDoubtful ? this.#findFrom(outer, reference) : undefined
    if (target === undefined) return []
    return older === undefined || older === target ? [target] : [target, older]
  }

  #findFrom(owner: object, reference: string): object | boolean | undefined {
    if (reference.startsWith('#'))
      return this.#findIn(owner, reference.slice(1)) ?? this.#anywhere.get(reference.slice(1))
    const target = toUri(reference, this.#resources.get(owner)?.uri ?? ROOT)
    const resource = target && (this.#byUri.get(target.resource) ?? this.#byUri.get(keyOf(target.resource)))
    return resource && this.#findIn(resource, target.fragment)
  }

  #findIn(resource: object, encoded: string): object | boolean | undefined {
    const fragment = decode(encoded)
    if (fragment === undefined || fragment === '') return fragment === '' ? resource : undefined
    return fragment.startsWith('/') ? follow(fragment, resource) : this.#resources.get(resource)?.anchors.get(fragment)
  }
}

/** Returns the `$id` of a schema. Up to draft-07, an `$id` beside a `$ref` has no meaning. */
function idOf(schema: JsonObject, draft: Draft): string | undefined {
  const own = schema[idKeyword(draft)]
  return typeof own === 'string' && (isSince(draft, '2019-09') || !('$ref' in schema)) ? own : undefined
}

function partAt(key: string, value: object, part: DocumentPart): DocumentPart {
  if (part !== 'schema') return part === 'data' ? 'data' : 'schema'
  if (Array.isArray(value)) return 'schema'
  const row = ROWS.get(key)
  if (!row) return 'data'
  return row.shapes.includes('map') ? 'map of schemas' : 'schema'
}

function toUri(reference: string, base: string): { readonly resource: string; readonly fragment: string } | undefined {
  if (reference.length > MAX_URI || !URL.canParse(reference, base)) return undefined
  const { href } = new URL(reference, base)
  const at = href.indexOf('#')
  const resource = at === -1 ? href : href.slice(0, at)
  return resource.length > MAX_URI ? undefined : { resource, fragment: at === -1 ? '' : href.slice(at + 1) }
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
interface Subschema {
  readonly pointer: string
  readonly schema: JsonObject
  /** Whether it applies to the same value rather than to a part of it. */
  readonly inPlace: boolean
}

type KeywordShape = 'one' | 'list' | 'map'

interface KeywordRow {
  readonly shapes: readonly KeywordShape[]
  readonly inPlace?: boolean
  /** Default: true. */
  readonly isApplied?: boolean
  readonly since?: Draft
  readonly until?: Draft
}

/** The keywords with subschemas, and the places of definitions. */
const ROWS: ReadonlyMap<string, KeywordRow> = new Map<string, KeywordRow>([
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
  ['$defs', { shapes: ['map'], isApplied: false }],
  ['definitions', { shapes: ['map'], isApplied: false }],
])

/** Returns the schemas that a schema applies, with their pointers. Definitions are applied only through references. */
export function* subschemasOf(schema: JsonObject, pointer: string, draft: Draft): Generator<Subschema> {
  for (const [keyword, value] of Object.entries(schema)) {
    const row = ROWS.get(keyword)
    if (
      !row ||
      row.isApplied === false ||
      (row.since && !isSince(draft, row.since)) ||
      (row.until && !isUntil(draft, row.until))
    )
      continue
    for (const [path, inner] of innerOf(value, row.shapes))
      if (isObject(inner))
        yield { pointer: `${pointer}/${keyword}${path}`, schema: inner, inPlace: row.inPlace ?? false }
  }
}

function innerOf(
  value: unknown,
  shapes: readonly KeywordShape[],
): readonly (readonly [path: string, schema: unknown])[] {
  if (Array.isArray(value)) return shapes.includes('list') ? value.map((item, i) => [`/${i}`, item]) : []
  if (!shapes.includes('map')) return [['', value]]
  return isObject(value) ? Object.entries(value).map(([key, item]) => [`/${escapePointer(key)}`, item]) : []
}
