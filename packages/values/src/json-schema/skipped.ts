import { createPattern } from '../regex/pattern.ts'
import { messageOf } from '../errors.ts'
import { escapePointer, isObject, type JsonObject } from '../json/json.ts'
import { createReferences, type Dialect, subschemasOf } from './document.ts'
import type { Draft } from './drafts.ts'

/** A keyword that is not checked, and why; the rest of the schema is. */
export interface SchemaWarning {
  /** RFC 6901. */
  readonly pointer: string
  readonly message: string
}

/** The parts of a document that cannot be checked. */
export interface Skipped {
  readonly warnings: readonly SchemaWarning[]
  /** The unchecked patterns. */
  readonly patterns: ReadonlySet<string>
  /** Schemas whose references lead back to themselves without descending into the value. */
  readonly loops: ReadonlySet<object>
  /** Returns whether a schema is checked in full, including everything that it refers to. */
  readonly isExact: (schema: unknown) => boolean
}

/** The largest size of all patterns of one document, with repeats expanded. */
const MAX_PATTERN_SIZE = 25_000
/** The longest chain of schemas that apply to the same value. */
const MAX_CHAIN = 200
/** The most schemas that may apply to one value. Each costs some of the steps of an input. */
const MAX_APPLIED = 50_000
/** The most of them that may come through one reference. If the total is too large, the next lower limit is tried. */
const MOST_THROUGH_REFERENCE = [10_000, 1000, 100, 10, 0]
const MAX_POINTER = 200

/** Finds the keywords of a document that cannot be checked. */
export function findSkipped(document: object, { draft, isKnown }: Dialect): Skipped {
  const nodes = isObject(document) ? collect(document, draft) : []
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

/** A schema that is applied, and the schemas that it applies. */
interface AppliedSchema {
  readonly schema: JsonObject
  readonly pointer: string
  readonly asks: { readonly node: AppliedSchema; readonly inPlace: boolean; readonly isReference: boolean }[]
}

function collect(document: JsonObject, draft: Draft): readonly AppliedSchema[] {
  const references = createReferences(document, draft)
  const nodes = new Map<object, AppliedSchema>()
  const nodeOf = (schema: JsonObject, pointer: string): AppliedSchema => {
    let node = nodes.get(schema)
    if (!node) nodes.set(schema, (node = { schema, pointer, asks: [] }))
    return node
  }
  nodeOf(document, '')
  // The map grows during the loop, until it has every schema that is applied.
  for (const { schema, pointer, asks } of nodes.values()) {
    for (const inner of subschemasOf(schema, pointer, references.draftOf(schema)))
      asks.push({ node: nodeOf(inner.schema, inner.pointer), inPlace: inner.inPlace, isReference: false })
    for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef']) {
      const reference = schema[keyword]
      const targets = typeof reference === 'string' ? references.find(reference, schema) : []
      const to =
        typeof reference === 'string' && reference.startsWith('#/') ? reference.slice(1) : `${pointer}/${keyword}`
      for (const target of targets)
        if (isObject(target)) asks.push({ node: nodeOf(target, to), inPlace: true, isReference: true })
    }
  }
  return [...nodes.values()]
}

interface SkippedPatterns {
  readonly warnings: readonly SchemaWarning[]
  readonly sources: ReadonlySet<string>
  readonly nodes: readonly AppliedSchema[]
}

function skippedPatterns(nodes: readonly AppliedSchema[]): SkippedPatterns {
  const problems = new Map<string, string | undefined>()
  const warnings: SchemaWarning[] = []
  const found = new Set<AppliedSchema>()
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

function patternsOf({ schema, pointer }: AppliedSchema): readonly (readonly [pointer: string, source: string])[] {
  const { pattern, patternProperties } = schema
  const sources = isObject(patternProperties) ? Object.keys(patternProperties) : []
  return [
    ...(typeof pattern === 'string' ? [[`${pointer}/pattern`, pattern] as const] : []),
    ...sources.map((source) => [`${pointer}/patternProperties/${escapePointer(source)}`, source] as const),
  ]
}

/** Finds references that form a loop, or lead to too many schemas. */
function findLoops(nodes: readonly AppliedSchema[]): ReadonlyMap<AppliedSchema, string> {
  for (const most of MOST_THROUGH_REFERENCE) {
    const { loops, applied } = cutReferences(nodes, most)
    if (applied <= MAX_APPLIED) return loops
  }
  return new Map(nodes.map((node) => [node, 'is not checked: its schema has too many references']))
}

/** The schemas that a schema applies to the same value. */
interface Reach {
  /** The longest chain of schemas. */
  readonly chain: number
  /** The number of applied schemas, counted once for each reference. */
  readonly applied: number
}

/** Leaves out references that form a loop or a long chain, or that apply more schemas than the limit. */
function cutReferences(
  nodes: readonly AppliedSchema[],
  most: number,
): { readonly loops: ReadonlyMap<AppliedSchema, string>; readonly applied: number } {
  const loops = new Map<AppliedSchema, string>()
  const known = new Map<AppliedSchema, Reach>()
  const open = new Set<AppliedSchema>()
  return { loops, applied: nodes.reduce((largest, node) => Math.max(largest, reachOf(node).applied), 0) }

  function reachOf(node: AppliedSchema): Reach {
    const found = known.get(node)
    if (found) return found
    open.add(node)
    let [chain, applied] = [0, 1]
    for (const { node: next, inPlace, isReference } of node.asks) {
      if (!inPlace) continue
      const reach = open.has(next) ? undefined : reachOf(next)
      const problem = isReference ? tooFar(reach, most) : undefined
      if (problem !== undefined) loops.set(node, `is not checked: it leads ${problem}`)
      else if (reach) [chain, applied] = [Math.max(chain, reach.chain), applied + reach.applied]
    }
    open.delete(node)
    const reach = { chain: chain + 1, applied }
    known.set(node, reach)
    return reach
  }
}

function tooFar(reach: Reach | undefined, most: number): string | undefined {
  if (!reach) return 'back to where it stands'
  if (reach.chain >= MAX_CHAIN) return `through more than ${MAX_CHAIN} schemas`
  return reach.applied > most ? `to more than ${most} schemas` : undefined
}

/** A schema is checked in full unless a part of it, or of a schema that it applies, is skipped. */
function exactness(nodes: readonly AppliedSchema[], skipped: readonly AppliedSchema[]): Skipped['isExact'] {
  if (skipped.length === 0) return () => true
  const askers = new Map<AppliedSchema, AppliedSchema[]>()
  for (const node of nodes)
    for (const { node: asked } of node.asks) askers.set(asked, [...(askers.get(asked) ?? []), node])
  const inexact = new Set(skipped)
  for (const node of inexact) for (const asker of askers.get(node) ?? []) inexact.add(asker)
  const schemas = new Set<object>([...inexact].map(({ schema }) => schema))
  return (schema) => !isObject(schema) || !schemas.has(schema)
}
