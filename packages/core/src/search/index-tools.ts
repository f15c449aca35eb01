import type { Toolset } from '../tools/toolset.ts'
import { type Field, FIELD_WEIGHTS, fieldTerms } from './fields.ts'

/**
 * The words of one snapshot and the tools that have each, as typed arrays. Immutable.
 *
 * The postings of term `t` are the positions `starts[t]` up to `starts[t + 1]` of `tools` and `weights`.
 */
export interface ToolIndex {
  readonly size: number
  /** In the order of UTF-16 units, for looking up words and beginnings of words. */
  readonly terms: readonly string[]
  readonly starts: Uint32Array
  /** Index of the tool in the snapshot; ascending within a term. */
  readonly tools: Uint32Array
  /** How often the tool has the term, each time counted with its field's weight. */
  readonly weights: Uint32Array
  /** Of each tool: the weights of all its terms added up. */
  readonly lengths: Uint32Array
}

const indexes = new WeakMap<Toolset, ToolIndex>()

/** Gives the index of a snapshot, made when it is first asked for and kept for as long as the snapshot. */
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
    for (const [field, terms] of Object.entries(fieldTerms(tool)) as [Field, readonly string[]][]) {
      const weight = FIELD_WEIGHTS[field]
      lengths[at] = (lengths[at] as number) + weight * terms.length
      for (const term of terms) count += addPosting(postings, term, at, weight)
    }
  }
  return { size, lengths, ...packPostings(postings, count) }
}

/**
 * Adds to the postings of a term, which are a tool and its weight in turn: an object for each would cost more than all
 * the rest. Tools come one after the other, so the latest posting is the only one that can be this tool's.
 */
function addPosting(postings: Map<string, number[]>, term: string, tool: number, weight: number): number {
  const known = postings.get(term)
  if (!known) {
    postings.set(term, [tool, weight])
    return 1
  }
  const last = known.length - 1
  if (known[last - 1] === tool) {
    known[last] = (known[last] as number) + weight
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
      tools[next] = pairs[i] as number
      weights[next++] = pairs[i + 1] as number
    }
    starts[at + 1] = next
  }
  return { terms, starts, tools, weights }
}

/** Gives the first position at which a term is not before `text`. */
export function positionOf(terms: readonly string[], text: string): number {
  let low = 0
  let high = terms.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((terms[middle] as string) < text) low = middle + 1
    else high = middle
  }
  return low
}
