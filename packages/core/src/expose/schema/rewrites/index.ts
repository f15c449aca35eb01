import { takes } from '../dialect.ts'
import type { At, Draft, Writer } from '../draft.ts'
import { appliesTo, KEYWORDS } from '../keywords.ts'
import { closedObject, missingItems, tupleToList, undeclaredRequired, unsaidItems } from './containers.ts'
import { bareAnyOf, missingType, nullBranch, oneOfToAnyOf, typeUnion, unionToOneObject } from './unions.ts'
import { constToEnum, exclusiveBounds, listedValues, narrowValues } from './values.ts'

/** Changes a draft where its target lacks something, and says so. */
export type Rewrite = (draft: Draft, writer: Writer, at: At) => void

/** In this order: each may leave to the later ones what it could not say. The last removes whatever is still lacking. */
export const REWRITES: readonly Rewrite[] = [
  oneOfToAnyOf,
  unionToOneObject,
  constToEnum,
  exclusiveBounds,
  tupleToList,
  listedValues,
  missingType,
  nullBranch,
  typeUnion,
  bareAnyOf,
  narrowValues,
  closedObject,
  undeclaredRequired,
  missingItems,
  unsaidItems,
  removeLacking,
]

/** Whatever the target still lacks goes into the description, for the model to read, or away. */
function removeLacking(draft: Draft, writer: Writer, at: At): void {
  const { dialect } = writer
  const types = draft.words.get('type') as readonly string[] | undefined
  for (const [keyword, word] of draft.words) {
    if (dialect.keywords && types && !types.some((type) => speaks(keyword, type, dialect))) draft.words.delete(keyword)
    else if (!takes(dialect, keyword, at.root)) writer.describe(draft, keyword, word)
    else if (!dialect.keywords && holdsReference(keyword, word)) writer.describe(draft, keyword, word)
  }
}

/** Where all formats are taken, numbers have some too, such as `int32`. */
function speaks(keyword: string, type: string, { formats }: Writer['dialect']): boolean {
  return appliesTo(keyword, type) || (keyword === 'format' && !formats && appliesTo('minimum', type))
}

/** What an unknown keyword holds cannot be followed; a reference in it could lead outside. */
function holdsReference(keyword: string, word: unknown): boolean {
  return !KEYWORDS.has(keyword) && typeof word === 'object' && /ref":/i.test(JSON.stringify(word))
}
