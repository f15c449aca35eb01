import type { Work } from '@toolgate/values'
import type { SeenText } from './seen-text.ts'

/** Characters that separate words in every text and never occur in an address. */
const BETWEEN =
  /[\s"<>()[\]{},;|\u00ab\u00bb\u2039\u203a\u201c\u201d\u201e\u2014\u2013\u3001\u3002\uff0c\uff1b\uff1a\uff01\uff1f\uff08\uff09\u300c\u300d\u300e\u300f\u3010\u3011\u300a\u300b\u3008\u3009]/
/** Characters that end a word only if a blank follows, because an address may contain them. */
const BEHIND = /[.!?:'\u2019`]/
/** Characters that precede a word in a quotation. */
const BEFORE = /['\u2018`]/
const MAILTO = 'mailto:'

/** The most positions that are checked before a value counts as not found. */
const MAX_PLACES = 1000

/** Returns whether a text contains a value as whole words. */
export function holdsWords(seen: SeenText, value: string, work?: Work): boolean {
  return findWhole(seen, value, work, (at) => at + value.length)
}

/** Returns whether a text contains a value as whole words, or an account number (IBAN) with other blanks. */
export function holdsWhole(seen: SeenText, value: string, work?: Work): boolean {
  if (holdsWords(seen, value, work)) return true
  const account = value.replaceAll(' ', '')
  if (!IBAN.test(account)) return false
  return findWhole(seen, account.slice(0, 4), work, (at) => endOfSpaced(seen.text, at, account))
}

const IBAN = /^[A-Z]{2}\d{2}[A-Z\d]{11,30}$/

/** `endOf` returns the end of a value that starts at a position, or `-1`. */
function findWhole(seen: SeenText, start: string, work: Work | undefined, endOf: (at: number) => number): boolean {
  let left = MAX_PLACES
  for (const at of seen.places(start, work)) {
    if (left-- === 0) return false
    const end = endOf(at)
    if (end !== -1 && isWhole(seen.text, at, end)) return true
  }
  return false
}

function endOfSpaced(text: string, from: number, account: string): number {
  let at = from
  for (const character of account) {
    if (text.charAt(at) === ' ') at++
    if (text.charAt(at) !== character) return -1
    at++
  }
  return at
}

/** Returns whether part of a text consists of whole words: `bob@x.com` is not whole in `bob@x.com.evil.org`. */
function isWhole(text: string, from: number, to: number): boolean {
  return startsWord(text, from) && endsWord(text, to)
}

function startsWord(text: string, from: number): boolean {
  for (let at = from; ; at -= MAILTO.length) {
    const word = at
    while (at > 0 && BEFORE.test(text.charAt(at - 1))) at--
    if (at === 0 || BETWEEN.test(text.charAt(at - 1))) return true
    if (at !== word || at < MAILTO.length || !text.startsWith(MAILTO, at - MAILTO.length)) return false
  }
}

function endsWord(text: string, to: number): boolean {
  let at = to
  while (at < text.length && BEHIND.test(text.charAt(at))) at++
  return at === text.length || BETWEEN.test(text.charAt(at))
}
