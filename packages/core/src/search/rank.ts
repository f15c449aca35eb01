import { type Bits, hasBit } from '../tools/bits.ts'
import { STOP_WORDS, toTerms, wholeTerm } from './fields.ts'
import { positionOf, type ToolIndex } from './index-tools.ts'
import { endsInWord, joinWords, tokenize } from './tokenize.ts'

/** The weight of a word that begins with the query's last word. */
export const PREFIX_WEIGHT = 0.25

/** One item that was found: its index in the snapshot of its part. */
interface Ranked {
  readonly part: number
  readonly at: number
  readonly score: number
}

/** The items of one snapshot that a search may find, with their number and total length. */
export interface SearchedPart {
  readonly index: ToolIndex
  readonly visible: Bits
  readonly count: number
  readonly length: number
}

/**
 * Returns the best items for a query over all parts, at most `limit`. Equal ones are sorted by part, then by id.
 *
 * Counts only visible items, so a hidden item changes no score: the result is that of an index without it.
 */
export function rank(parts: readonly SearchedPart[], { terms, prefix }: ParsedQuery, limit: number): readonly Ranked[] {
  const ranking = createRanking(parts)
  for (const term of terms) {
    for (const one of ranking.parts) {
      const at = positionOf(one.index.terms, term)
      if (one.index.terms[at] === term) findItems(one, at)
    }
    addScores(ranking, 1)
  }
  if (prefix !== undefined) {
    const known = new Set(terms)
    for (const one of ranking.parts) {
      const end = positionOf(one.index.terms, `${prefix}\uffff`)
      for (let at = positionOf(one.index.terms, prefix); at < end; at++)
        if (!known.has(one.index.terms[at] ?? '')) findItems(one, at)
    }
    addScores(ranking, PREFIX_WEIGHT)
  }
  return bestOf(ranking.parts, limit)
}

/** The scores of one query so far. The totals are over all parts, so that scores of all parts are comparable. */
interface Ranking {
  readonly parts: readonly RankedPart[]
  readonly count: number
  readonly averageLength: number
}

/** A part with its scores, and with its visible items that have one of several terms. Reused within one query. */
interface RankedPart extends SearchedPart {
  readonly scores: Float64Array
  readonly found: Uint32Array
  readonly weights: Uint32Array
  foundCount: number
}

function createRanking(parts: readonly SearchedPart[]): Ranking {
  const count = parts.reduce((sum, part) => sum + part.count, 0)
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return { parts: parts.map(createRankedPart), count, averageLength: length / count }
}

function createRankedPart({ index, visible, count, length }: SearchedPart): RankedPart {
  const { size } = index
  const [scores, found, weights] = [new Float64Array(size), new Uint32Array(size), new Uint32Array(size)]
  return { index, visible, count, length, scores, found, weights, foundCount: 0 }
}

/** Adds the items of a term. Terms with the same prefix count as one term, so that a rare one does not count as rare. */
function findItems(part: RankedPart, term: number): void {
  const { index, visible, found, weights } = part
  const end = index.starts[term + 1] ?? 0
  for (let at = index.starts[term] ?? 0; at < end; at++) {
    const item = index.tools[at] ?? 0
    if (!hasBit(visible, item)) continue
    const before = weights[item] ?? 0
    if (before === 0) found[part.foundCount++] = item
    weights[item] = before + (index.weights[at] ?? 0)
  }
}

/** Adds the found items to the scores, and empties `found`. */
function addScores({ parts, count, averageLength }: Ranking, weight: number): void {
  const withTerm = parts.reduce((sum, { foundCount }) => sum + foundCount, 0)
  const rarity = weight * inverseFrequency(count, withTerm)
  for (const part of parts) {
    const { index, scores, found, weights } = part
    for (let i = 0; i < part.foundCount; i++) {
      const item = found[i] ?? 0
      const length = index.lengths[item] ?? 0
      scores[item] = (scores[item] ?? 0) + rarity * saturation(weights[item] ?? 0, length, averageLength)
      weights[item] = 0
    }
    part.foundCount = 0
  }
}

/** Returns the best items. Visits each part by id, so that a later item must be better to rank higher. */
function bestOf(parts: readonly RankedPart[], limit: number): readonly Ranked[] {
  const best: Ranked[] = []
  let least = 0
  for (const [part, { scores }] of parts.entries()) {
    for (const [at, score] of scores.entries()) {
      if (score <= least) continue
      const place = best.findLastIndex((other) => other.score >= score) + 1
      best.splice(place, 0, { part, at, score })
      if (best.length > limit) best.pop()
      if (best.length === limit) least = best.at(-1)?.score ?? 0
    }
  }
  return best
}

/**
 * BM25 as in Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), which gives
 * 1.2 to 2 for `k1` and 0.5 to 0.8 for `b`; fields weighted before the frequency saturates, as in Robertson,
 * Zaragoza & Taylor, "Simple BM25 Extension to Multiple Weighted Fields" (CIKM 2004).
 *
 * The idf has Lucene's 1 inside the logarithm, so that a word which most tools have never counts against one.
 * The constant factor k1 + 1 is left out: it changes no order.
 */
export const K1 = 1.2
export const B = 0.75

/** Returns the weight of a word that `withTerm` of `count` tools have. */
function inverseFrequency(count: number, withTerm: number): number {
  return Math.log(1 + (count - withTerm + 0.5) / (withTerm + 0.5))
}

/** Returns the weight of a word that occurs `frequency` times in a text of `length` words. */
function saturation(frequency: number, length: number, averageLength: number): number {
  return frequency / (frequency + K1 * (1 - B + (B * length) / averageLength))
}

/** The most characters of a query that are read. */
export const MAX_QUERY_LENGTH = 512
const MAX_TERMS = 24
const MIN_PREFIX_LENGTH = 2

/** A query: its terms, each once, and the prefix that is its last word. */
interface ParsedQuery {
  readonly terms: readonly string[]
  /** The last word as typed, if it may be unfinished. */
  readonly prefix: string | undefined
}

const NOTHING: ParsedQuery = { terms: [], prefix: undefined }

/** Reads at most 512 characters and 24 terms of a query. */
export function parseQuery(query: string): ParsedQuery {
  const text = query.slice(0, MAX_QUERY_LENGTH)
  const words = tokenize(text)
  if (words.length === 0) return NOTHING
  const meaningful = words.filter((word) => !STOP_WORDS.has(word))
  const used = meaningful.length > 0 ? meaningful : words
  const joined = joinWords(meaningful.length > 0 ? withoutStopWords(text) : text)
  const terms = [...new Set([...toTerms([...used, joined]), wholeTerm(joined)])].slice(0, MAX_TERMS)
  const last = used.at(-1)
  const isBeginning = last !== undefined && last === words.at(-1) && isLongEnough(last) && endsInWord(text)
  return { terms, prefix: isBeginning ? last : undefined }
}

function withoutStopWords(text: string): string {
  const words = text.split(/\s+/)
  return words.filter((word) => !STOP_WORDS.has(word.toLowerCase())).join(' ')
}

/** Returns whether a prefix is long enough: two letters, or one character of a script such as Han. */
function isLongEnough(word: string): boolean {
  return word.length >= MIN_PREFIX_LENGTH || word > '\u2e80'
}
