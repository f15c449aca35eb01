/** The drafts of JSON Schema, oldest first. */
export const DRAFTS = ['draft-04', 'draft-06', 'draft-07', '2019-09', '2020-12'] as const
export type Draft = (typeof DRAFTS)[number]

/** What `$schema` may say, without `http://` or `https://` and without a `#` at its end. */
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
  /** Whether it is the draft that `$schema` names, or the default. */
  readonly isKnown: boolean
}

/** Gives the draft that a document is read by: 2020-12 where it names none, or one that is not known. */
export function dialectOf(document: object): Dialect {
  const { $schema } = document as { readonly $schema?: unknown }
  if (typeof $schema !== 'string') return { draft: DEFAULT, isKnown: true }
  const draft = META_SCHEMAS.get($schema.replace(/^https?:\/\//, '').replace(/#$/, ''))
  return { draft: draft ?? DEFAULT, isKnown: draft !== undefined }
}

/** Answers whether a draft is at least as new as another. */
export function isSince(draft: Draft, oldest: Draft): boolean {
  return DRAFTS.indexOf(draft) >= DRAFTS.indexOf(oldest)
}

/** The keyword that names a schema within the document. */
export function idKeyword(draft: Draft): '$id' | 'id' {
  return draft === 'draft-04' ? 'id' : '$id'
}
