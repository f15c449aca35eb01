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
  for (const term of terms) {
    const at = positionOf(index.terms, term)
    if (index.terms[at] === term) addScores(scores, searched, findTools(searched, at, at + 1), 1)
  }
  if (prefix !== undefined) {
    const from = positionOf(index.terms, prefix)
    const to = positionOf(index.terms, `${prefix}\uffff`)
    addScores(scores, searched, findTools(searched, from, to, new Set(terms)), PREFIX_WEIGHT)
  }
  return bestOf(scores, limit)
}

/** The visible tools that have any of some terms, and how much. */
interface Found {
  readonly tools: Uint32Array
  readonly weights: Uint32Array
  readonly count: number
}

/** Takes terms that begin alike for one: rare ones among them must not count as rare. */
function findTools({ index, visible }: Searched, from: number, to: number, except?: ReadonlySet<string>): Found {
  const { starts, terms } = index
  const weights = new Uint32Array(index.size)
  const tools = new Uint32Array(Math.min(index.size, (starts[to] as number) - (starts[from] as number)))
  let count = 0
  for (let term = from; term < to; term++) {
    if (except?.has(terms[term] as string)) continue
    const end = starts[term + 1] as number
    for (let at = starts[term] as number; at < end; at++) {
      const tool = index.tools[at] as number
      if (!hasBit(visible, tool)) continue
      const before = weights[tool] as number
      if (before === 0) tools[count++] = tool
      weights[tool] = before + (index.weights[at] as number)
    }
  }
  return { tools, weights, count }
}

function addScores(scores: Float64Array, searched: Searched, { tools, weights, count }: Found, weight: number): void {
  const { index, averageLength } = searched
  const rarity = weight * inverseFrequency(searched.count, count)
  for (let i = 0; i < count; i++) {
    const tool = tools[i] as number
    const length = index.lengths[tool] as number
    scores[tool] = (scores[tool] as number) + rarity * saturation(weights[tool] as number, length, averageLength)
  }
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
