import { createPattern } from '../util/regex/pattern.ts'
import { messageOf } from '../errors.ts'
import {
  createReferences,
  type Dialect,
  type Draft,
  isPlainObject,
  type PlainObject,
  subschemasOf,
  toPointerToken,
} from './document.ts'

/** A keyword that is not checked, and why; the rest of the schema is. */
export interface SchemaWarning {
  /** RFC 6901. */
  readonly pointer: string
  readonly message: string
}

/** What of a document cannot be checked. */
export interface Skipped {
  readonly warnings: readonly SchemaWarning[]
  /** The patterns among it. */
  readonly patterns: ReadonlySet<string>
  /** Schemas whose references lead back to themselves without a step into the value. */
  readonly loops: ReadonlySet<object>
  /** Answers whether a schema is checked in full, with all that it refers to. */
  readonly isExact: (schema: unknown) => boolean
}

/** What the patterns of one document may come to once their repeats are written out. */
const MAX_PATTERN_SIZE = 25_000
/** Schemas that may follow on each other without a step into the value. */
const MAX_CHAIN = 200
const MAX_POINTER = 200

/** Finds the keywords of a document that cannot be checked, whoever wrote it. */
export function findSkipped(document: object, { draft, isKnown }: Dialect): Skipped {
  const nodes = collect(document as PlainObject, draft)
  const patterns = skippedPatterns(nodes)
  const loops = findLoops(nodes)
  return {
    warnings: [
      ...(isKnown ? [] : [{ pointer: '/$schema', message: 'is an unknown dialect; the schema is read as 2020-12' }]),
      ...patterns.warnings,
      ...[...loops].map(([node, message]) => ({ pointer: `${node.pointer}/$ref`, message })),
    ].map(({ pointer, message }) => ({ pointer: pointer.slice(0, MAX_POINTER), message })),
    patterns: patterns.sources,
    loops: new Set([...loops.keys()].map(({ schema }) => schema)),
    isExact: exactness(nodes, [...patterns.nodes, ...loops.keys()]),
  }
}

/** A schema that is asked, and what it asks. */
interface Node {
  readonly schema: PlainObject
  readonly pointer: string
  readonly asks: { readonly node: Node; readonly inPlace: boolean; readonly isReference: boolean }[]
}

function collect(document: PlainObject, draft: Draft): readonly Node[] {
  const references = createReferences(document, draft)
  const nodes = new Map<object, Node>()
  const nodeOf = (schema: PlainObject, pointer: string): Node => {
    let node = nodes.get(schema)
    if (!node) nodes.set(schema, (node = { schema, pointer, asks: [] }))
    return node
  }
  nodeOf(document, '')
  // The map grows while it is walked, until every schema that is asked is in it.
  for (const { schema, pointer, asks } of nodes.values()) {
    for (const inner of subschemasOf(schema, pointer, draft))
      asks.push({ node: nodeOf(inner.schema, inner.pointer), inPlace: inner.inPlace, isReference: false })
    for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef']) {
      const reference = schema[keyword]
      const target = typeof reference === 'string' ? references.find(reference, schema) : undefined
      if (isPlainObject(target))
        asks.push({ node: nodeOf(target, String(reference).slice(1)), inPlace: true, isReference: true })
    }
  }
  return [...nodes.values()]
}

interface SkippedPatterns {
  readonly warnings: readonly SchemaWarning[]
  readonly sources: ReadonlySet<string>
  readonly nodes: readonly Node[]
}

function skippedPatterns(nodes: readonly Node[]): SkippedPatterns {
  const problems = new Map<string, string | undefined>()
  const warnings: SchemaWarning[] = []
  const found = new Set<Node>()
  let left = MAX_PATTERN_SIZE
  for (const node of nodes) {
    for (const [pointer, source] of patternsOf(node)) {
      if (!problems.has(source)) problems.set(source, problemOf(source))
      const problem = problems.get(source)
      if (problem === undefined) continue
      warnings.push({ pointer, message: `is not checked: ${problem}` })
      found.add(node)
    }
  }
  const sources = new Set([...problems].flatMap(([source, problem]) => (problem === undefined ? [] : [source])))
  return { warnings, sources, nodes: [...found] }

  function problemOf(source: string): string | undefined {
    try {
      left -= createPattern(source, 'ecma').size
      return left < 0 ? `the patterns of its schema have more than ${MAX_PATTERN_SIZE} steps` : undefined
    } catch (error) {
      return `this pattern cannot be run, ${messageOf(error)}`
    }
  }
}

function patternsOf({ schema, pointer }: Node): readonly (readonly [pointer: string, source: string])[] {
  const { pattern, patternProperties } = schema
  const sources = isPlainObject(patternProperties) ? Object.keys(patternProperties) : []
  return [
    ...(typeof pattern === 'string' ? [[`${pointer}/pattern`, pattern] as const] : []),
    ...sources.map((source) => [`${pointer}/patternProperties/${toPointerToken(source)}`, source] as const),
  ]
}

/** Finds the references that would never come to an end, or only after a long chain. */
function findLoops(nodes: readonly Node[]): ReadonlyMap<Node, string> {
  const loops = new Map<Node, string>()
  const lengths = new Map<Node, number>()
  const open = new Set<Node>()
  for (const node of nodes) lengthOf(node)
  return loops

  /** Gives how many schemas follow on each other from one on. */
  function lengthOf(node: Node): number {
    const known = lengths.get(node)
    if (known !== undefined) return known
    open.add(node)
    let longest = 0
    for (const { node: next, inPlace, isReference } of node.asks) {
      if (!inPlace) continue
      if (open.has(next)) {
        if (isReference) loops.set(node, 'is not checked: it leads back to where it stands')
        continue
      }
      const length = lengthOf(next)
      if (isReference && length >= MAX_CHAIN)
        loops.set(node, `is not checked: it leads through more than ${MAX_CHAIN} schemas`)
      else longest = Math.max(longest, length)
    }
    open.delete(node)
    lengths.set(node, longest + 1)
    return longest + 1
  }
}

/** A schema is checked in full unless something in it is skipped, or in what it asks. */
function exactness(nodes: readonly Node[], skipped: readonly Node[]): Skipped['isExact'] {
  if (skipped.length === 0) return () => true
  const askers = new Map<Node, Node[]>()
  for (const node of nodes)
    for (const { node: asked } of node.asks) askers.set(asked, [...(askers.get(asked) ?? []), node])
  const inexact = new Set(skipped)
  for (const node of inexact) for (const asker of askers.get(node) ?? []) inexact.add(asker)
  const schemas = new Set<object>([...inexact].map(({ schema }) => schema))
  return (schema) => !isPlainObject(schema) || !schemas.has(schema)
}
