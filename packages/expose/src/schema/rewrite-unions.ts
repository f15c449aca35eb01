import { takes } from './dialect.ts'
import type { At, SchemaDraft, Writer } from './draft.ts'
import { ANNOTATIONS, appliesTo, SPEAKS_OF } from './keywords.ts'
import { below, both, createNode, type SchemaNode, type NodeMap, toText, wordOf } from './node.ts'

export function oneOfToAnyOf(draft: SchemaDraft, { dialect, note }: Writer, at: At): void {
  const oneOf = draft.words.get('oneOf')
  if (!oneOf || takes(dialect, 'oneOf', at.root) || draft.words.has('anyOf')) return
  if (!takes(dialect, 'anyOf', at.root)) return
  draft.words.delete('oneOf')
  draft.words.set('anyOf', oneOf)
  note({ path: below(draft.pointer, 'oneOf'), feature: 'oneOf', from: 'oneOf', to: 'anyOf', action: 'rewritten' })
}

/** A root that may be one of several objects becomes one object that has the properties of all. */
export function unionToOneObject(draft: SchemaDraft, writer: Writer, at: At): void {
  if (!at.root) return
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const branches = wordOf(draft, keyword)
    if (!branches || takes(writer.dialect, keyword, true)) continue
    draft.words.delete(keyword)
    const objects = branches.map((branch) => writer.absorbed(branch, at)).filter(mayBeObject)
    addProperties(draft, objects)
    addRequired(draft, objects)
    writer.note({
      path: below(draft.pointer, keyword),
      feature: keyword,
      from: `${keyword} of ${branches.length}`,
      to: 'one object with the properties of all',
      action: 'rewritten',
    })
  }
}

function mayBeObject({ words }: SchemaDraft): boolean {
  const types = wordOf({ words }, 'type')
  return (types === undefined || types.includes('object')) && !words.has('not')
}

function addProperties(draft: SchemaDraft, objects: readonly SchemaDraft[]): void {
  const own = wordOf(draft, 'properties') ?? new Map()
  const offered = new Map<string, SchemaNode[]>()
  for (const { words } of objects) {
    for (const [key, node] of wordOf({ words }, 'properties') ?? new Map()) {
      offered.set(key, [...(offered.get(key) ?? []), node])
    }
  }
  const properties = new Map(own)
  for (const [key, nodes] of offered) {
    const union = anyNode(nodes)
    const mine = own.get(key)
    properties.set(key, mine ? both(mine, union) : union)
  }
  if (properties.size > 0) draft.words.set('properties', sortedMap(properties))
}

/** Returns the properties that every branch requires. */
function addRequired(draft: SchemaDraft, objects: readonly SchemaDraft[]): void {
  const lists = objects.map(({ words }) => wordOf({ words }, 'required') ?? [])
  const common = (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)))
  const required = [...new Set([...(wordOf(draft, 'required') ?? []), ...common])]
  if (required.length > 0) draft.words.set('required', required)
}

/** Moves the keywords beside `anyOf` into each of its branches, which has the same meaning. */
export function bareAnyOf(draft: SchemaDraft, { dialect, note }: Writer): void {
  const branches = wordOf(draft, 'anyOf')
  if (!dialect.bareAnyOf || !branches) return
  const beside = [...draft.words].filter(([keyword]) => isConstraint(keyword) && keyword !== 'anyOf')
  if (beside.length === 0) return
  const constraint = createNode(draft.pointer, new Map(beside))
  for (const [keyword] of beside) draft.words.delete(keyword)
  draft.words.set(
    'anyOf',
    branches.map((branch) => createNode(branch.pointer, new Map([['allOf', [branch, constraint]]]))),
  )
  note({
    path: below(draft.pointer, 'anyOf'),
    feature: 'anyOf',
    from: `beside ${beside.map(([keyword]) => keyword).join(', ')}`,
    to: 'in each branch',
    action: 'rewritten',
  })
}

export function missingType(draft: SchemaDraft, { dialect, note }: Writer): void {
  if (!dialect.typed || TYPED.some((keyword) => draft.words.has(keyword))) return
  const spoken = [...draft.words.keys()].map((keyword) => SPEAKS_OF.get(keyword)).find((type) => type !== undefined)
  const types = spoken ? [spoken] : SCALARS
  draft.words.set('type', types)
  note({ path: draft.pointer, feature: 'type', from: 'any value', to: toText(types), action: 'rewritten' })
}

const TYPED = ['type', 'enum', 'const', 'anyOf', '$ref'] as const

/** OpenAPI has null as a keyword of its own, not as one of the types. */
export function nullBranch(draft: SchemaDraft, { dialect, note }: Writer): void {
  const branches = wordOf(draft, 'anyOf')
  if (dialect.unions !== 'nullable' || !branches) return
  const others = branches.filter(({ words }) => wordOf({ words }, 'type')?.join() !== 'null')
  if (others.length === branches.length || others.length === 0) return
  draft.words.set('nullable', true)
  draft.words.set('anyOf', others)
  note({ path: below(draft.pointer, 'anyOf'), feature: 'type', from: '"null"', to: 'nullable', action: 'rewritten' })
}

export function typeUnion(draft: SchemaDraft, { dialect, note }: Writer): void {
  const types = wordOf(draft, 'type')
  if (!types || types.length === 0 || dialect.unions === 'type-list') return
  const nullable = dialect.unions === 'nullable' && types.includes('null')
  const named = nullable ? types.filter((type) => type !== 'null') : types
  if (nullable) {
    draft.words.set('nullable', true)
    draft.words.set('type', named.length > 0 ? named : ['string'])
    note({
      path: below(draft.pointer, 'type'),
      feature: 'type',
      from: toText(types),
      to: named.length > 0 ? `${toText(named)}, nullable` : 'a string that is null',
      action: 'rewritten',
    })
  }
  if (named.length < 2) return
  const constraints = [...draft.words].filter(([keyword]) => isConstraint(keyword) && keyword !== 'type')
  const branches = named.map((type) => {
    const own = constraints.filter(([keyword]) => appliesTo(keyword, type))
    return createNode(draft.pointer, new Map<string, unknown>([['type', [type]], ...own]))
  })
  for (const [keyword] of constraints) draft.words.delete(keyword)
  draft.words.delete('type')
  draft.words.set('anyOf', branches)
  if (!nullable) {
    note({
      path: below(draft.pointer, 'type'),
      feature: 'type',
      from: toText(types),
      to: `anyOf of ${branches.length}`,
      action: 'rewritten',
    })
  }
}

function isConstraint(keyword: string): boolean {
  return !ANNOTATIONS.has(keyword) && keyword !== 'nullable' && keyword !== '$ref'
}

export const SCALARS = ['string', 'number', 'boolean', 'null'] as const

export function anyNode(nodes: readonly SchemaNode[]): SchemaNode {
  const [first, second] = nodes
  return first && !second ? first : createNode(first?.pointer ?? '', new Map([['anyOf', nodes]]))
}

export function sortedMap(map: ReadonlyMap<string, SchemaNode>): NodeMap {
  return new Map([...map].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
