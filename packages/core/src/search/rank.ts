import { type Bits, hasBit } from '../tools/bits.ts'
import { inverseFrequency, saturation } from './bm25.ts'
import { positionOf, type ToolIndex } from './index-tools.ts'
import type { ParsedQuery } from './query.ts'

/** What a word counts that only begins with the query's last. */
export const PREFIX_WEIGHT = 0.25

/** One tool that was found: its index in the snapshot. */
export interface Ranked {
  readonly at: number
  readonly score: number
}

/** The tools that a search may find, and what it needs to know of them as a whole. */
export interface Searched {
  readonly index: ToolIndex
  readonly visible: Bits
  readonly count: number
  readonly averageLength: number
}

/**
 * Gives the best tools for a query, at most `limit`; of equal ones the one with the smaller id first.
 *
 * Everything counted is counted over the visible tools alone, so a tool that is not among them changes no
 * score: the answer is that of an index without it.
 */
export function rank(searched: Searched, { terms, prefix }: ParsedQuery, limit: number): readonly Ranked[] {
  const { index } = searched
  const scores = new Float64Array(index.size)
  const found = createFound(index.size)
  for (const term of terms) {
    const at = positionOf(index.terms, term)
    if (index.terms[at] !== term) continue
    findTools(found, searched, at)
    addScores(scores, found, searched, 1)
  }
  if (prefix !== undefined) {
    const known = new Set(terms)
    const end = positionOf(index.terms, `${prefix}\uffff`)
    for (let at = positionOf(index.terms, prefix); at < end; at++)
      if (!known.has(index.terms[at] as string)) findTools(found, searched, at)
    addScores(scores, found, searched, PREFIX_WEIGHT)
  }
  return bestOf(scores, limit)
}

/** The visible tools that have a term, or any of several, and how much of them. Used again and again in one query. */
interface Found {
  readonly tools: Uint32Array
  readonly weights: Uint32Array
  count: number
}

function createFound(size: number): Found {
  return { tools: new Uint32Array(size), weights: new Uint32Array(size), count: 0 }
}

/** Adds up terms that begin alike as if they were one: rare ones among them must not count as rare. */
function findTools(found: Found, { index, visible }: Searched, term: number): void {
  const { tools, weights } = found
  const end = index.starts[term + 1] as number
  for (let at = index.starts[term] as number; at < end; at++) {
    const tool = index.tools[at] as number
    if (!hasBit(visible, tool)) continue
    const before = weights[tool] as number
    if (before === 0) tools[found.count++] = tool
    weights[tool] = before + (index.weights[at] as number)
  }
}

/** Adds what was found to the scores, and empties it. */
function addScores(scores: Float64Array, found: Found, searched: Searched, weight: number): void {
  const { index, averageLength } = searched
  const { tools, weights } = found
  const rarity = weight * inverseFrequency(searched.count, found.count)
  for (let i = 0; i < found.count; i++) {
    const tool = tools[i] as number
    const length = index.lengths[tool] as number
    scores[tool] = (scores[tool] as number) + rarity * saturation(weights[tool] as number, length, averageLength)
    weights[tool] = 0
  }
  found.count = 0
}

/** Walks the tools in the order of their ids, so that a later one must be better to come before. */
function bestOf(scores: Float64Array, limit: number): readonly Ranked[] {
  const best: Ranked[] = []
  let least = 0
  for (let at = 0; at < scores.length; at++) {
    const score = scores[at] as number
    if (score <= least) continue
    let place = best.length
    while (place > 0 && (best[place - 1] as Ranked).score < score) place--
    best.splice(place, 0, { at, score })
    if (best.length > limit) best.pop()
    if (best.length === limit) least = (best[limit - 1] as Ranked).score
  }
  return best
}
