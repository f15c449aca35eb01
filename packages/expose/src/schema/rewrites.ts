import { takes } from './dialect.ts'
import type { At, SchemaDraft, Writer } from './draft.ts'
import { appliesTo, KEYWORDS } from './keywords.ts'
import { below, createNode, toText, wordOf } from './node.ts'
import {
  anyNode,
  bareAnyOf,
  missingType,
  nullBranch,
  oneOfToAnyOf,
  SCALARS,
  sortedMap,
  typeUnion,
  unionToOneObject,
} from './rewrite-unions.ts'
import { constToEnum, exclusiveBounds, listedValues, narrowValues } from './rewrite-values.ts'

/** Changes a draft where its target lacks a feature, with a note. */
type Rewrite = (draft: SchemaDraft, writer: Writer, at: At) => void

/**
 * The rewrites, in the order in which they run. One rewrite may leave work for later ones. The last one removes every
 * feature that the target does not support.
 */
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

/** Moves every remaining unsupported keyword into the description, for the model to read, or removes it. */
function removeLacking(draft: SchemaDraft, writer: Writer, at: At): void {
  const { dialect } = writer
  const types = wordOf(draft, 'type')
  for (const [keyword, word] of draft.words) {
    if (dialect.keywords && types && !types.some((type) => speaks(keyword, type, dialect))) draft.words.delete(keyword)
    else if (!takes(dialect, keyword, at.root)) writer.describe(draft, keyword, word)
    else if (!dialect.keywords && holdsReference(keyword, word)) writer.describe(draft, keyword, word)
  }
}

/** If all formats are accepted, numbers have formats too, such as `int32`. */
function speaks(keyword: string, type: string, { formats }: Writer['dialect']): boolean {
  return appliesTo(keyword, type) || (keyword === 'format' && !formats && appliesTo('minimum', type))
}

/** Removes unknown keywords: a reference in one could lead outside. */
function holdsReference(keyword: string, word: unknown): boolean {
  return !KEYWORDS.has(keyword) && typeof word === 'object' && /ref":/i.test(JSON.stringify(word))
}

/** Turns a tuple into a list of items that match any of the tuple's schemas. */
function tupleToList(draft: SchemaDraft, { dialect, note }: Writer, at: At): void {
  const tuple = wordOf(draft, 'prefixItems')
  if (!tuple || takes(dialect, 'prefixItems', at.root) || !takes(dialect, 'items', at.root)) return
  const rest = wordOf(draft, 'items')
  const more = typeof rest === 'object' ? [rest] : []
  draft.words.delete('prefixItems')
  draft.words.set('items', anyNode([...tuple, ...more]))
  if (rest === false && !draft.words.has('maxItems')) draft.words.set('maxItems', tuple.length)
  note({
    path: below(draft.pointer, 'prefixItems'),
    feature: 'prefixItems',
    from: `a tuple of ${tuple.length}`,
    to: 'a list of any of its items',
    action: 'rewritten',
  })
}

function closedObject(draft: SchemaDraft, { dialect, note }: Writer): void {
  if (!dialect.closed || !isObjectDraft(draft)) return
  const { words, pointer } = draft
  const open = words.get('additionalProperties')
  const declared = words.has('properties')
  words.set('additionalProperties', false)
  if (!declared) words.set('properties', new Map())
  // A free object without declared properties has become an empty one.
  if (open === false || (open === undefined && declared)) return
  note({
    path: open === undefined ? pointer : below(pointer, 'additionalProperties'),
    feature: 'additionalProperties',
    from: typeof open === 'object' ? 'properties of any name' : 'any properties',
    to: 'false',
    action: 'rewritten',
  })
}

function isObjectDraft({ words }: SchemaDraft): boolean {
  return (wordOf({ words }, 'type') ?? []).includes('object')
}

/** Declares required properties that are not declared, in closed objects. */
function undeclaredRequired(draft: SchemaDraft, { dialect, note }: Writer): void {
  const required = wordOf(draft, 'required')
  if (!dialect.keywords || !required) return
  const declaredNow = wordOf(draft, 'properties')
  const undeclared = required.filter((name) => !declaredNow?.has(name))
  if (undeclared.length === 0) return
  const properties = new Map(declaredNow)
  if (dialect.closed) {
    for (const name of undeclared) properties.set(name, createNode(below(draft.pointer, 'required'), new Map()))
    draft.words.set('properties', sortedMap(properties))
  } else {
    const declared = required.filter((name) => properties.has(name))
    if (declared.length > 0) draft.words.set('required', declared)
    else draft.words.delete('required')
  }
  note({
    path: below(draft.pointer, 'required'),
    feature: 'required',
    from: `undeclared ${toText(undeclared)}`,
    to: dialect.closed ? 'declared' : undefined,
    action: dialect.closed ? 'rewritten' : 'removed',
  })
}

/** Adds `items: {}` where a target requires `items`. */
function unsaidItems(draft: SchemaDraft, { dialect, note }: Writer): void {
  const items = draft.words.get('items')
  if (!dialect.itemsNeeded || !isListDraft(draft) || typeof items === 'object' || items === false) return
  draft.words.set('items', createNode(draft.pointer, new Map()))
  note({
    path: draft.pointer,
    feature: 'items',
    from: items === true ? 'true' : 'absent',
    to: '{}',
    action: 'rewritten',
  })
}

function isListDraft({ words }: SchemaDraft): boolean {
  return (wordOf({ words }, 'type') ?? []).includes('array')
}

function missingItems(draft: SchemaDraft, { dialect, note }: Writer): void {
  const items = draft.words.get('items')
  if (!dialect.keywords || !isListDraft(draft) || typeof items === 'object') return
  if (items === true) draft.words.delete('items')
  if (items === false) {
    draft.words.delete('items')
    if (!draft.words.has('prefixItems')) draft.words.set('maxItems', 0)
    note({ path: below(draft.pointer, 'items'), feature: 'items', from: 'false', to: undefined, action: 'removed' })
  }
  if (!dialect.typed) return
  draft.words.set('items', createNode(draft.pointer, new Map([['type', SCALARS]])))
  note({ path: draft.pointer, feature: 'items', from: 'any items', to: toText(SCALARS), action: 'rewritten' })
}
