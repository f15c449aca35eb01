import { takes } from './dialect.ts'
import type { At, Draft, Writer } from './draft.ts'
import { ANNOTATIONS, appliesTo, KEYWORDS, SPEAKS_OF, typeOf } from './keywords.ts'
import { below, both, createNode, isObject, type Node, type NodeMap, toText } from './node.ts'

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
  removeLacking,
]

const SCALARS = ['string', 'number', 'boolean', 'null'] as const

function oneOfToAnyOf(draft: Draft, { dialect, note }: Writer, at: At): void {
  const oneOf = draft.words.get('oneOf')
  if (!oneOf || takes(dialect, 'oneOf', at.root) || draft.words.has('anyOf')) return
  if (!takes(dialect, 'anyOf', at.root)) return
  draft.words.delete('oneOf')
  draft.words.set('anyOf', oneOf)
  note({ path: below(draft.pointer, 'oneOf'), feature: 'oneOf', from: 'oneOf', to: 'anyOf', action: 'rewritten' })
}

/** A root that may be one of several objects becomes one object that has the properties of all. */
function unionToOneObject(draft: Draft, writer: Writer, at: At): void {
  if (!at.root) return
  for (const keyword of ['anyOf', 'oneOf']) {
    const branches = draft.words.get(keyword) as readonly Node[] | undefined
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

function mayBeObject({ words }: Draft): boolean {
  const types = words.get('type') as readonly string[] | undefined
  return (types === undefined || types.includes('object')) && !words.has('not')
}

function addProperties(draft: Draft, objects: readonly Draft[]): void {
  const own = (draft.words.get('properties') ?? new Map()) as NodeMap
  const offered = new Map<string, Node[]>()
  for (const { words } of objects) {
    for (const [key, node] of (words.get('properties') ?? new Map()) as NodeMap) {
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

function anyNode(nodes: readonly Node[]): Node {
  const [first] = nodes as [Node, ...Node[]]
  return nodes.length === 1 ? first : createNode(first.pointer, new Map([['anyOf', nodes]]))
}

/** What every branch requires is required. */
function addRequired(draft: Draft, objects: readonly Draft[]): void {
  const lists = objects.map(({ words }) => (words.get('required') ?? []) as readonly string[])
  const common = (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)))
  const required = [...new Set([...((draft.words.get('required') ?? []) as readonly string[]), ...common])]
  if (required.length > 0) draft.words.set('required', required)
}

function constToEnum(draft: Draft, { dialect, note }: Writer, at: At): void {
  if (!draft.words.has('const') || takes(dialect, 'const', at.root) || !takes(dialect, 'enum', at.root)) return
  const value = draft.words.get('const')
  draft.words.delete('const')
  draft.words.set('enum', [value])
  note({
    path: below(draft.pointer, 'const'),
    feature: 'const',
    from: toText(value),
    to: `enum: ${toText([value])}`,
    action: 'rewritten',
  })
}

/** `x > 5` is `x >= 6` for integers; for other numbers the bound itself is let in. */
function exclusiveBounds(draft: Draft, { dialect, note }: Writer, at: At): void {
  for (const [keyword, bound, step] of [
    ['exclusiveMinimum', 'minimum', 1],
    ['exclusiveMaximum', 'maximum', -1],
  ] as const) {
    const value = draft.words.get(keyword) as number | undefined
    if (value === undefined || takes(dialect, keyword, at.root) || !takes(dialect, bound, at.root)) continue
    const types = draft.words.get('type') as readonly string[] | undefined
    const integer = types?.includes('integer') && !types.includes('number')
    const inclusive = !integer
      ? value
      : Number.isInteger(value)
        ? value + step
        : step > 0
          ? Math.ceil(value)
          : Math.floor(value)
    const other = draft.words.get(bound) as number | undefined
    const met = other === undefined ? inclusive : step > 0 ? Math.max(other, inclusive) : Math.min(other, inclusive)
    draft.words.delete(keyword)
    draft.words.set(bound, met)
    note({
      path: below(draft.pointer, keyword),
      feature: keyword,
      from: toText(value),
      to: `${bound}: ${toText(met)}`,
      action: 'rewritten',
    })
  }
}

/** A tuple becomes a list, each item of which is like one of the tuple's. */
function tupleToList(draft: Draft, { dialect, note }: Writer, at: At): void {
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

/** Keeps of `enum` and `const` what the target can list, and what the type lets through. */
function listedValues(draft: Draft, writer: Writer): void {
  const { dialect } = writer
  if (!dialect.enums) return
  for (const keyword of ['enum', 'const'] as const) {
    if (!draft.words.has(keyword)) continue
    const word = draft.words.get(keyword)
    const values = keyword === 'const' ? [word] : (word as readonly unknown[])
    const types = draft.words.get('type') as readonly string[] | undefined
    const possible = types ? values.filter((value) => types.some((type) => isOfType(value, type))) : values
    const scalar = possible.length > 0 && possible.every((value) => !isObject(value) && !Array.isArray(value))
    if (!scalar) {
      writer.describe(draft, keyword, word)
      continue
    }
    if (keyword === 'enum') draft.words.set('enum', possible)
    const listed = [...new Set(possible.map(typeOf))]
    if (dialect.untypedEnums) draft.words.delete('type')
    else if (!types || types.length > listed.length) draft.words.set('type', listed)
    if (dialect.enums === 'texts') enumOfTexts(draft, writer, possible)
  }
}

function isOfType(value: unknown, type: string): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeOf(value) === type
}

/** OpenAPI lists numbers as texts, with the format `enum`, and says null elsewhere. */
function enumOfTexts(draft: Draft, writer: Writer, values: readonly unknown[]): void {
  const listed = values.filter((value) => value !== null)
  const types = new Set(listed.map(typeOf))
  if (listed.length === 0) draft.words.delete('enum')
  else if (types.size > 1 || types.has('boolean')) writer.describe(draft, 'enum', values)
  else draft.words.set('enum', listed.map(String))
  if (types.has('number') && types.size === 1) {
    draft.words.set('format', 'enum')
    writer.note({
      path: below(draft.pointer, 'enum'),
      feature: 'enum',
      from: toText(values),
      to: toText(listed.map(String)),
      action: 'rewritten',
    })
  }
}

function missingType(draft: Draft, { dialect, note }: Writer): void {
  if (!dialect.typed || TYPED.some((keyword) => draft.words.has(keyword))) return
  const spoken = [...draft.words.keys()].map((keyword) => SPEAKS_OF.get(keyword)).find((type) => type !== undefined)
  const types = spoken ? [spoken] : SCALARS
  draft.words.set('type', types)
  note({ path: draft.pointer, feature: 'type', from: 'any value', to: toText(types), action: 'rewritten' })
}

const TYPED = ['type', 'enum', 'const', 'anyOf', '$ref'] as const

/** OpenAPI says that a value may be null beside the other types, not as one of them. */
function nullBranch(draft: Draft, { dialect, note }: Writer): void {
  const branches = draft.words.get('anyOf') as readonly Node[] | undefined
  if (dialect.unions !== 'nullable' || !branches) return
  const others = branches.filter(({ words }) => (words.get('type') as readonly string[] | undefined)?.join() !== 'null')
  if (others.length === branches.length || others.length === 0) return
  draft.words.set('nullable', true)
  draft.words.set('anyOf', others)
  note({ path: below(draft.pointer, 'anyOf'), feature: 'type', from: '"null"', to: 'nullable', action: 'rewritten' })
}

function typeUnion(draft: Draft, { dialect, note }: Writer): void {
  const types = draft.words.get('type') as readonly string[] | undefined
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

/** What stands beside `anyOf` goes into each of its branches, where it says the same. */
function bareAnyOf(draft: Draft, { dialect, note }: Writer): void {
  const branches = draft.words.get('anyOf') as readonly Node[] | undefined
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

function narrowValues(draft: Draft, writer: Writer): void {
  const { formats, minItems } = writer.dialect
  const format = draft.words.get('format') as string | undefined
  if (formats && format !== undefined && !formats.has(format)) writer.describe(draft, 'format', format)
  const least = draft.words.get('minItems') as number | undefined
  if (minItems && least !== undefined && !minItems.has(least)) writer.describe(draft, 'minItems', least)
}

function isObjectDraft({ words }: Draft): boolean {
  return ((words.get('type') ?? []) as readonly string[]).includes('object')
}

function closedObject(draft: Draft, { dialect, note }: Writer): void {
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

/** A required property that is not declared: a closed object needs it, others take it without. */
function undeclaredRequired(draft: Draft, { dialect, note }: Writer): void {
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

function missingItems(draft: Draft, { dialect, note }: Writer): void {
  const types = (draft.words.get('type') ?? []) as readonly string[]
  const items = draft.words.get('items')
  if (!dialect.keywords || !types.includes('array') || typeof items === 'object') return
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

function sortedMap(map: ReadonlyMap<string, Node>): NodeMap {
  return new Map([...map].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
