import { spend, type Work } from '../work.ts'
import { assignedAt, flaggedAt } from './assignments.ts'
import type { KeyNames } from './secret-keys.ts'
import { BACKSLASH, COLON, DASH, EQUALS, isAlnum, isBlank, isWordCode, PERCENT, SLASH, type Span } from './spans.ts'
import { createValueMemo, mayBegin, tildedAt, valueAt, type ValueMemo } from './values-in-text.ts'

const OTHER = 0
const ALNUM = 1
const JOINER = 2
const SIGN = 3
const BLANK = 4
const ESCAPE = 5
const TILDE = 6

/** The kind of each ASCII character. */
const KINDS: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) => {
  if (isAlnum(code)) return ALNUM
  if (isWordCode(code)) return JOINER
  if (code === COLON || code === EQUALS) return SIGN
  if (isBlank(code)) return BLANK
  if (code === BACKSLASH || code === PERCENT) return ESCAPE
  return code === 126 ? TILDE : OTHER
})

/** The cost in steps of trying a value, of trying the key before a sign, and of each secret found. */
const VALUE_STEPS = 80
const SIGN_STEPS = 8
const FOUND_STEPS = 150

/**
 * Returns the texts that look like secrets, and the values of keys that name one, in one pass over the text.
 *
 * Each character is read a bounded number of times. Tries and matches cost steps, as they take far longer than reading
 * a character.
 *
 * @throws {WorkSpentError}
 */
export function scanText(text: string, keys: KeyNames, work: Work): readonly Span[] | undefined {
  let spans: Span[] | undefined
  let memo: ValueMemo | undefined
  let edge = true
  let edgeAt = -1
  let wordStart = 0
  let inWord = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    const kind = code < 128 ? (KINDS[code] ?? OTHER) : OTHER
    let found: Span | undefined
    if (kind === ALNUM) {
      if (!inWord) wordStart = i
      inWord = true
      if ((edge || i === edgeAt) && mayBegin(text, i, code)) {
        spend(work, VALUE_STEPS)
        found = valueAt(text, i, (memo ??= createValueMemo()))
      }
      edge = false
    } else {
      if (kind === JOINER) {
        if (!inWord) wordStart = i
      } else if (kind === SIGN) {
        spend(work, SIGN_STEPS)
        found = signAt(text, i, code, keys)
      } else if (kind === BLANK) {
        if (inWord && isFlag(text, wordStart)) {
          spend(work, SIGN_STEPS)
          found = flaggedAt(text, wordStart, i, keys)
        }
      } else if (kind === ESCAPE) {
        edgeAt = escapeEnd(text, i, code)
        if (code === PERCENT && isEscapedSign(text, i)) found = assignedAt(text, i, i + 3, keys)
      } else if (kind === TILDE) found = tildedAt(text, i)
      inWord = kind === JOINER
      edge = true
    }
    if (found) {
      spend(work, FOUND_STEPS)
      spans ??= []
      spans.push(found)
      i = found.end - 1
      inWord = false
      edge = true
    }
  }
  return spans
}

function signAt(text: string, at: number, code: number, keys: KeyNames): Span | undefined {
  if (code === COLON && text.charCodeAt(at + 1) === SLASH && text.charCodeAt(at + 2) === SLASH)
    return userInfoAt(text, at + 3)
  return assignedAt(text, at, at + 1, keys)
}

function isFlag(text: string, start: number): boolean {
  return text.charCodeAt(start) === DASH && text.charCodeAt(start + 1) === DASH
}

/** Returns the end of an escape: the `n` of `\n` and the digits of `%2F` are no letters of a word. */
function escapeEnd(text: string, at: number, code: number): number {
  if (code === PERCENT) return at + 3
  return text[at + 1] === 'u' ? at + 6 : at + 2
}

/** Returns whether a `%` begins `%3D` or `%3A`. */
function isEscapedSign(text: string, at: number): boolean {
  if (text[at + 1] !== '3') return false
  const last = text[at + 2]
  return last === 'D' || last === 'd' || last === 'A' || last === 'a'
}

const AUTHORITY_END = /[/?#\s"'`<>\\]/g
const OPAQUE_USER = /^(?=.*\d)[\w-]{20,}$/

/** Returns the password of `scheme://user:password@host`, or the user if it looks like a token (RFC 3986 §3.2.1). */
function userInfoAt(text: string, from: number): Span | undefined {
  AUTHORITY_END.lastIndex = from
  const authority = text.slice(from, AUTHORITY_END.exec(text)?.index ?? text.length)
  const at = authority.lastIndexOf('@')
  if (at <= 0) return undefined
  const colon = authority.indexOf(':')
  if (colon === -1 || colon > at) {
    return OPAQUE_USER.test(authority.slice(0, at)) ? { start: from, end: from + at, name: 'url-user' } : undefined
  }
  return colon + 1 < at ? { start: from + colon + 1, end: from + at, name: 'url-password' } : undefined
}
