import { type Bits, hasBit } from '../tools/bits.ts'
import { STOP_WORDS, toTerms, wholeTerm } from './fields.ts'
import { positionOf, type ToolIndex } from './index-tools.ts'
import { endsInWord, joinWords, tokenize } from './tokenize.ts'

/** The weight of a word that begins with the query's last word. */
export const PREFIX_WEIGHT = 0.25

/** One tool that was found: its index in the snapshot. */
export interface Ranked {
  readonly at: number
  readonly score: number
}

/** The tools that a search may find, with their number and average length. */
export interface Searched {
  readonly index: ToolIndex
  readonly visible: Bits
  readonly count: number
  readonly averageLength: number
}

/**
 * Returns the best tools for a query, at most `limit`. Equal ones are sorted by id.
 *
 * Counts only visible tools, so a hidden tool changes no score: the result is that of an index without it.
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
      if (!known.has(index.terms[at] ?? '')) findTools(found, searched, at)
    addScores(scores, found, searched, PREFIX_WEIGHT)
  }
  return bestOf(scores, limit)
}

/** The visible tools that have one of several terms, with their weights. Reused within one query. */
interface Found {
  readonly tools: Uint32Array
  readonly weights: Uint32Array
  count: number
}

function createFound(size: number): Found {
  return { tools: new Uint32Array(size), weights: new Uint32Array(size), count: 0 }
}

/** Adds the tools of a term. Terms with the same prefix count as one term, so that a rare one does not count as rare. */
function findTools(found: Found, { index, visible }: Searched, term: number): void {
  const { tools, weights } = found
  const end = index.starts[term + 1] ?? 0
  for (let at = index.starts[term] ?? 0; at < end; at++) {
    const tool = index.tools[at] ?? 0
    if (!hasBit(visible, tool)) continue
    const before = weights[tool] ?? 0
    if (before === 0) tools[found.count++] = tool
    weights[tool] = before + (index.weights[at] ?? 0)
  }
}

/** Adds the found tools to the scores, and empties `found`. */
function addScores(scores: Float64Array, found: Found, searched: Searched, weight: number): void {
  const { index, averageLength } = searched
  const { tools, weights } = found
  const rarity = weight * inverseFrequency(searched.count, found.count)
  for (let i = 0; i < found.count; i++) {
    const tool = tools[i] ?? 0
    const length = index.lengths[tool] ?? 0
    scores[tool] = (scores[tool] ?? 0) + rarity * saturation(weights[tool] ?? 0, length, averageLength)
    weights[tool] = 0
  }
  found.count = 0
}

/** Returns the best tools. Visits tools by id, so that a later one must be better to rank higher. */
function bestOf(scores: Float64Array, limit: number): readonly Ranked[] {
  const best: Ranked[] = []
  let least = 0
  for (const [at, score] of scores.entries()) {
    if (score <= least) continue
    const place = best.findLastIndex((other) => other.score >= score) + 1
    best.splice(place, 0, { at, score })
    if (best.length > limit) best.pop()
    if (best.length === limit) least = best.at(-1)?.score ?? 0
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
export function inverseFrequency(count: number, withTerm: number): number {
  return Math.log(1 + (count - withTerm + 0.5) / (withTerm + 0.5))
}

/** Returns the weight of `frequency` repetitions in a text of `length` words, if the average is `averageLength`. */
export function saturation(frequency: number, length: number, averageLength: number): number {
  return frequency / (frequency + K1 * (1 - B + (B * length) / averageLength))
}

/** How much of a longer query is read. */
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

/** Whether a prefix is long enough: two letters, or one character of a script such as Han. */
function isLongEnough(word: string): boolean {
  return word.length >= MIN_PREFIX_LENGTH || word > '\u2e80'
}
