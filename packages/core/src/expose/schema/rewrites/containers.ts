import { takes } from '../dialect.ts'
import type { At, Draft, Writer } from '../draft.ts'
import { below, createNode, type Node, type NodeMap, toText } from '../node.ts'
import { SCALARS, anyNode, sortedMap } from './shared.ts'

/** A tuple becomes a list, each item of which is like one of the tuple's. */
export function tupleToList(draft: Draft, { dialect, note }: Writer, at: At): void {
  const tuple = draft.words.get('prefixItems') as readonly Node[] | undefined
  if (!tuple || takes(dialect, 'prefixItems', at.root) || !takes(dialect, 'items', at.root)) return
  const rest = draft.words.get('items')
  const more = typeof rest === 'object' ? [rest as Node] : []
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

export function closedObject(draft: Draft, { dialect, note }: Writer): void {
  if (!dialect.closed || !isObjectDraft(draft)) return
  const { words, pointer } = draft
  const open = words.get('additionalProperties')
  const declared = words.has('properties')
  words.set('additionalProperties', false)
  if (!declared) words.set('properties', new Map())
  // Without declared properties, what was a free object is now an empty one.
  if (open === false || (open === undefined && declared)) return
  note({
    path: open === undefined ? pointer : below(pointer, 'additionalProperties'),
    feature: 'additionalProperties',
    from: typeof open === 'object' ? 'properties of any name' : 'any properties',
    to: 'false',
    action: 'rewritten',
  })
}

function isObjectDraft({ words }: Draft): boolean {
  return ((words.get('type') ?? []) as readonly string[]).includes('object')
}

/** A required property that is not declared: a closed object needs it, others take it without. */
export function undeclaredRequired(draft: Draft, { dialect, note }: Writer): void {
  const required = draft.words.get('required') as readonly string[] | undefined
  if (!dialect.keywords || !required) return
  const declaredNow = draft.words.get('properties') as NodeMap | undefined
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

/** Items that are any are still said where a target wants them said. */
export function unsaidItems(draft: Draft, { dialect, note }: Writer): void {
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

function isListDraft({ words }: Draft): boolean {
  return ((words.get('type') ?? []) as readonly string[]).includes('array')
}

export function missingItems(draft: Draft, { dialect, note }: Writer): void {
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
