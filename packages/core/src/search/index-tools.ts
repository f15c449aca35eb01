import type { Toolset } from '../tools/toolset.ts'
import { FIELD_WEIGHTS, FIELDS, fieldTerms } from './fields.ts'

/**
 * The terms of one snapshot and the tools that have each, as typed arrays. Immutable.
 *
 * The postings of term `t` are the positions `starts[t]` up to `starts[t + 1]` of `tools` and `weights`.
 */
export interface ToolIndex {
  readonly size: number
  /** Sorted by UTF-16 units, to look up words and prefixes. */
  readonly terms: readonly string[]
  readonly starts: Uint32Array
  /** Index of the tool in the snapshot; ascending within a term. */
  readonly tools: Uint32Array
  /** How often the tool has the term, weighted by field. */
  readonly weights: Uint32Array
  /** The sum of all term weights of each tool. */
  readonly lengths: Uint32Array
}

const indexes = new WeakMap<Toolset, ToolIndex>()

/** Returns the index of a snapshot. Computed at first use and cached with the snapshot. */
export function toolIndexOf(snapshot: Toolset): ToolIndex {
  let index = indexes.get(snapshot)
  if (!index) indexes.set(snapshot, (index = indexTools(snapshot)))
  return index
}

function indexTools({ tools, size }: Toolset): ToolIndex {
  const postings = new Map<string, number[]>()
  const lengths = new Uint32Array(size)
  let count = 0
  for (const [at, tool] of tools.entries()) {
    const byField = fieldTerms(tool)
    for (const field of FIELDS) {
      const terms = byField[field]
      const weight = FIELD_WEIGHTS[field]
      lengths[at] = (lengths[at] ?? 0) + weight * terms.length
      for (const term of terms) count += addPosting(postings, term, at, weight)
    }
  }
  return { size, lengths, ...packPostings(postings, count) }
}

/**
 * Adds to the postings of a term: pairs of a tool and its weight, without an object for each, which would dominate the
 * cost. Tools come in order, so only the latest posting can be this tool's.
 */
function addPosting(postings: Map<string, number[]>, term: string, tool: number, weight: number): number {
  const known = postings.get(term)
  if (!known) {
    postings.set(term, [tool, weight])
    return 1
  }
  const last = known.length - 1
  if (known[last - 1] === tool) {
    known[last] = (known[last] ?? 0) + weight
    return 0
  }
  known.push(tool, weight)
  return 1
}

function packPostings(
  postings: ReadonlyMap<string, readonly number[]>,
  count: number,
): Pick<ToolIndex, 'terms' | 'starts' | 'tools' | 'weights'> {
  const terms = [...postings.keys()].toSorted()
  const starts = new Uint32Array(terms.length + 1)
  const tools = new Uint32Array(count)
  const weights = new Uint32Array(count)
  let next = 0
  for (const [at, term] of terms.entries()) {
    const pairs = postings.get(term) ?? []
    for (let i = 0; i < pairs.length; i += 2) {
      tools[next] = pairs[i] ?? 0
      weights[next++] = pairs[i + 1] ?? 0
    }
    starts[at + 1] = next
  }
  return { terms, starts, tools, weights }
}

/** Returns the first position at which a term is not before `text`. */
export function positionOf(terms: readonly string[], text: string): number {
  let low = 0
  let high = terms.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((terms[middle] ?? '') < text) low = middle + 1
    else high = middle
  }
  return low
}
