import { toTerms, wholeTerm } from './fields.ts'
import { STOP_WORDS } from './stop-words.ts'
import { endsInWord, joinWords, tokenize } from './tokenize.ts'

/** Of a longer query this much is read. */
export const MAX_QUERY_LENGTH = 512
const MAX_TERMS = 24
const MIN_PREFIX_LENGTH = 2

/** What a query asks for: terms, each once, and what its last word begins with. */
export interface ParsedQuery {
  readonly terms: readonly string[]
  /** The last word as it was typed, where it may not be finished. */
  readonly prefix: string | undefined
}

const NOTHING: ParsedQuery = { terms: [], prefix: undefined }

/** Reads at most 512 characters and 24 terms of a query. */
export function parseQuery(query: string): ParsedQuery {
  const text = query.slice(0, MAX_QUERY_LENGTH)
  const words = tokenize(text)
  if (words.length === 0) return NOTHING
  const telling = words.filter((word) => !STOP_WORDS.has(word))
  const used = telling.length > 0 ? telling : words
  const joined = joinWords(telling.length > 0 ? withoutStopWords(text) : text)
  const terms = [...new Set([...toTerms([...used, joined]), wholeTerm(joined)])].slice(0, MAX_TERMS)
  const last = used.at(-1)
  const isBeginning = last !== undefined && last === words.at(-1) && isLongEnough(last) && endsInWord(text)
  return { terms, prefix: isBeginning ? last : undefined }
}

function withoutStopWords(text: string): string {
  const words = text.split(/\s+/)
  return words.filter((word) => !STOP_WORDS.has(word.toLowerCase())).join(' ')
}

/** One letter of an alphabet begins too many words; one character of Han is much of a word. */
function isLongEnough(word: string): boolean {
  return word.length >= MIN_PREFIX_LENGTH || word > '\u2e80'
}
