import { DRAFT_04 } from './meta-schemas/draft-04.ts'
import { DRAFT_06 } from './meta-schemas/draft-06.ts'
import { DRAFT_07 } from './meta-schemas/draft-07.ts'
import { DRAFT_2019_09 } from './meta-schemas/2019-09.ts'
import { DRAFT_2020_12 } from './meta-schemas/2020-12.ts'

/**
 * The drafts of JSON Schema, oldest first. A document that names no draft is read as 2020-12, including older forms of
 * keywords that have no meaning in 2020-12: lists in `items`, `exclusiveMinimum: true`, `$recursiveRef`.
 */
export const DRAFTS = ['draft-04', 'draft-06', 'draft-07', '2019-09', '2020-12', 'unnamed'] as const
export type Draft = (typeof DRAFTS)[number]

interface MetaSchema {
  readonly draft: Draft
  /** Creates the meta-schema and its vocabularies, only for documents that refer to them. */
  readonly make: () => readonly object[]
}

/** The drafts by the value of `$schema`, without `http://` or `https://` and without a final `#`. */
const META_SCHEMAS: ReadonlyMap<string, MetaSchema> = new Map([
  ['json-schema.org/draft-04/schema', { draft: 'draft-04', make: DRAFT_04 }],
  ['json-schema.org/draft-06/schema', { draft: 'draft-06', make: DRAFT_06 }],
  ['json-schema.org/draft-07/schema', { draft: 'draft-07', make: DRAFT_07 }],
  ['json-schema.org/draft/2019-09/schema', { draft: '2019-09', make: DRAFT_2019_09 }],
  ['json-schema.org/draft/2020-12/schema', { draft: '2020-12', make: DRAFT_2020_12 }],
  ['json-schema.org/schema', { draft: '2020-12', make: DRAFT_2020_12 }],
])
const VOCABULARY = /^(json-schema\.org\/draft\/20\d\d-\d\d\/)meta\/[a-z-]+$/

/** Returns the draft whose meta-schema has a URI; `undefined` for any other URI. */
export function draftOfUri(uri: string): Draft | undefined {
  return META_SCHEMAS.get(keyOf(uri))?.draft
}

/** The meta-schemas of one draft, by their URIs. */
interface MetaDocuments {
  readonly draft: Draft
  readonly documents: ReadonlyMap<string, object>
}

const made = new Map<MetaSchema, MetaDocuments>()

/** Returns the meta-schemas for a URI of a draft or of one of its vocabularies. */
export function metaSchemasOf(uri: string): MetaDocuments | undefined {
  const key = keyOf(uri)
  const row = META_SCHEMAS.get(key) ?? META_SCHEMAS.get(key.replace(VOCABULARY, '$1schema'))
  if (!row) return undefined
  let known = made.get(row)
  if (!known) made.set(row, (known = { draft: row.draft, documents: new Map(row.make().map(byUri)) }))
  return known
}

function byUri(document: object): [string, object] {
  const uri = '$id' in document ? document.$id : Reflect.get(document, 'id')
  return [keyOf(String(uri)), document]
}

/** Returns the key of a meta-schema. `http:` and `https:` give the same key. */
export function keyOf(uri: string): string {
  const key = uri.replace(/^https?:\/\//, '').replace(/#.*$/s, '')
  return key === 'json-schema.org/schema' ? 'json-schema.org/draft/2020-12/schema' : key
}
