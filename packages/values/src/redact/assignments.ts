import { BACKSLASH, DOT, isAlnum, isBlank, isQuote, isWordCode, type Span } from './spans.ts'
import type { KeyNames, SecretKey, ValueKind } from './secret-keys.ts'

const MAX_BLANKS = 8
const MAX_BACKSLASHES = 8
const MAX_KEY = 100

/** Returns the value after a `:` or `=` at `at`, if the key before it names a secret. The sign ends at `after`. */
export function assignedAt(text: string, at: number, after: number, keys: KeyNames): Span | undefined {
  const keyEnd = skipBack(text, at)
  if (!keys.mayEnd(text, keyEnd)) return undefined
  const keyStart = wordStart(text, keyEnd)
  const row = keyStart === keyEnd ? undefined : keys.find(text.slice(keyStart, keyEnd))
  if (row === undefined) return undefined
  const isEscaped = after - at > 1
  return valueSpan(
    text,
    skipBlanks(text, skipSigns(text, after)),
    isEscaped ? { ...row, extent: 'escaped' } : row,
    keyStart,
  )
}

/** Returns the value after a flag such as `--token` that ends at `at`. */
export function flaggedAt(text: string, start: number, at: number, keys: KeyNames): Span | undefined {
  const row = keys.find(text.slice(Math.max(start, at - MAX_KEY), at))
  const from = row ? skipBlanks(text, at) : at
  if (row === undefined || from === at || text.startsWith('-', from)) return undefined
  return valueSpan(text, from, { ...row, extent: 'word' }, start)
}

/** Returns whether a value is secret under a key of this kind. */
export function isSecretValue(kind: ValueKind, value: string): boolean {
  switch (kind) {
    case 'any':
      return value !== '' && !isReference(value)
    case 'opaque':
      return value.length >= 16 && /\d/.test(value) && /[A-Za-z]/.test(value) && !/\s/.test(value)
    case 'digits':
      return /^\d{3,12}$/.test(value)
    case 'never':
      return false
  }
}

/** Type names, empty values and names of variables, which are not secrets. */
const REFERENCE =
  /^(?:null|undefined|true|false|none|nil|string|number|boolean|str|int|bool|any|unknown|void|object|required|optional|\$\{[A-Za-z0-9_.:-]{1,100}\}|\$\(?[A-Z_][A-Z0-9_]{1,100}\)?|%[A-Z_][A-Z0-9_]{1,100}%|\{\{[^{}]{1,100}\}\}|<[a-z][a-z _-]{1,60}>|process\.env\.\w{1,100}|\*{3,40}|x{3,40})$/i

function isReference(value: string): boolean {
  return value.length <= 110 && REFERENCE.test(value)
}

/** Characters of a value that are read before its kind is known. */
const MAX_HEAD = 128

function valueSpan(text: string, from: number, row: SecretKey, keyStart: number): Span | undefined {
  const quote = quoteAt(text, from)
  const start = quote ? quote.end : from
  if (row.values !== 'any' && !isSecretValue(row.values, headOf(text, start))) return undefined
  const end = quote ? closingQuote(text, quote) : unquotedEnd(text, start, row, keyStart)
  if (!isSecretValue(row.values, text.slice(start, end))) return undefined
  const inner = quote ? end : withoutClosers(text, start, end)
  return inner > start ? { start, end: inner, name: row.name } : undefined
}

function headOf(text: string, start: number): string {
  const head = text.slice(start, start + MAX_HEAD)
  return head.slice(0, wordValueEnd(head, 0))
}

interface Quote {
  readonly code: number
  readonly backslashes: number
  readonly end: number
}

/** Returns the quote at a position. In a text inside a text it has backslashes before it. */
function quoteAt(text: string, from: number): Quote | undefined {
  let at = from
  while (at < from + MAX_BACKSLASHES && text.charCodeAt(at) === BACKSLASH) at++
  const code = text.charCodeAt(at)
  return isQuote(code) ? { code, backslashes: at - from, end: at + 1 } : undefined
}

/** Returns the end of the quoted text. Without a closing quote it is the end of the line. */
function closingQuote(text: string, { code, backslashes, end }: Quote): number {
  const mark = String.fromCharCode(code)
  for (let at = text.indexOf(mark, end); at !== -1; at = text.indexOf(mark, at + 1)) {
    const before = backslashesBefore(text, at, end)
    if (backslashes === 0 ? before % 2 === 0 : before <= backslashes) return at - (backslashes === 0 ? 0 : before)
  }
  return lineEnd(text, end)
}

function backslashesBefore(text: string, at: number, from: number): number {
  let start = at
  while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start--
  return at - start
}

function unquotedEnd(text: string, start: number, { extent = 'word' }: SecretKey, keyStart: number): number {
  if (extent === 'word') return wordValueEnd(text, start)
  if (extent === 'escaped') return search(ESCAPED_WORD_END, text, start)
  // A masked value ends with its marker.
  if (extent === 'authorization' && text.startsWith('[redacted:', start)) return wordValueEnd(text, start)
  const end = headerEnd(text, start, keyStart)
  if (extent === 'line') return end
  const scheme = SCHEME.exec(text.slice(start, Math.min(end, start + 40)))
  return scheme ? Math.min(end, wordValueEnd(text, start + scheme[0].length)) : end
}

/** Schemes with one word after them. The values of other schemes extend to the end of the line. */
const SCHEME = /^(?:bearer|basic|token|apikey|api-key|key|negotiate)[ \t]{1,8}/i
const WORD_END = /[\s"'`,;&<]|\\{1,8}["'nrt]/g
/** In a percent-encoded value, the sign before the next value is encoded too. */
const ESCAPED_WORD_END = /[\s"'`,;&<]|%(?:26|3[bB]|0[aAdD])/g
const CLOSERS = /[)\]}>.]/

function wordValueEnd(text: string, start: number): number {
  return search(WORD_END, text, start)
}

/** Removes a closing bracket or full stop: it belongs to the text around the assignment. */
function withoutClosers(text: string, start: number, end: number): number {
  let inner = end
  while (inner > start && CLOSERS.test(text[inner - 1] as string)) inner--
  return inner
}

/** Returns the end of a header: the closing quote in `-H 'Cookie: a=b'`, otherwise the end of the line. */
function headerEnd(text: string, start: number, keyStart: number): number {
  const pattern = HEADER_ENDS.get(text.charCodeAt(keyStart - 1)) ?? LINE_END
  return search(pattern, text, start)
}

const HEADER_ENDS: ReadonlyMap<number, RegExp> = new Map([
  [34, /[\r\n\u2028\u2029"]|\\{1,8}["nr]/g],
  [39, /[\r\n\u2028\u2029']|\\{1,8}['nr]/g],
  [96, /[\r\n\u2028\u2029`]|\\{1,8}[`nr]/g],
])
const LINE_END = /[\r\n\u2028\u2029]|\\{1,8}[nr]/g

function lineEnd(text: string, from: number): number {
  return search(LINE_END, text, from)
}

function search(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

/** Skips blanks and a closing quote or bracket, back to the end of the key. */
function skipBack(text: string, at: number): number {
  let end = at
  while (end > at - MAX_BLANKS && isBlank(text.charCodeAt(end - 1))) end--
  const last = text.charCodeAt(end - 1)
  if (last === 93) return end - 1 // `]` of `user[password]=`
  if (!isQuote(last)) return end
  end--
  for (let i = 0; i < MAX_BACKSLASHES && text.charCodeAt(end - 1) === BACKSLASH; i++) end--
  return end
}

/** Returns the start of a key in any script. A full stop after a single letter belongs to the key: `P.I.N.` */
function wordStart(text: string, end: number): number {
  let start = end
  while (start > end - MAX_KEY && isKeyCode(text, start - 1)) start--
  return start
}

function isKeyCode(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  if (code === DOT) return isAlnum(text.charCodeAt(at - 1)) && !isAlnum(text.charCodeAt(at - 2))
  return isWordCode(code) || code > 127
}

/** Skips the rest of `==`, `:=` and `=>`. */
function skipSigns(text: string, after: number): number {
  const code = text.charCodeAt(after)
  return code === 61 || code === 62 ? after + 1 : after
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (at < from + MAX_BLANKS && isBlank(text.charCodeAt(at))) at++
  return at
}
