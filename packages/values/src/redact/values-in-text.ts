import { DASH, isWordCode, type Span } from './spans.ts'
import { SECRET_VALUES, type SecretValue } from './secret-values.ts'

/** State of a scan of one text, from its beginning to its end. */
export interface ValueMemo {
  /** The position before which a row is not tried again. */
  blocked: Map<SecretValue, number> | undefined
  /** The next line that ends a private key. */
  keyEnd: { readonly start: number; readonly end: number }
}

export function createValueMemo(): ValueMemo {
  return { blocked: undefined, keyEnd: { start: -1, end: -1 } }
}

const CODES = 128
const ALL_CODES: readonly number[] = Array.from({ length: CODES }, (_, code) => code)
const DIGITS: readonly number[] = ALL_CODES.slice(48, 58)

/** The rows that begin with a pair of characters, and the possible third characters. */
interface RowsOfPair {
  readonly rows: SecretValue[]
  readonly thirds: Uint8Array
}

/** Rows by their first two characters. One or two look-ups here exclude nearly every word. */
const BY_PAIR: readonly (RowsOfPair | undefined)[] = toPairs()

const IS_PAIR: Uint8Array = Uint8Array.from(BY_PAIR, (beginning) => (beginning ? 1 : 0))

/** Returns whether a secret may begin here. Looks at three characters. */
export function mayBegin(text: string, at: number, first: number): boolean {
  const second = text.charCodeAt(at + 1)
  if (!(second < CODES) || IS_PAIR[first * CODES + second] === 0) return false
  return BY_PAIR[first * CODES + second]?.thirds[text.charCodeAt(at + 2)] === 1
}

/** Returns the secret that begins at a position of a text. Positions must grow from call to call. */
export function valueAt(text: string, at: number, memo: ValueMemo): Span | undefined {
  const beginning = BY_PAIR[text.charCodeAt(at) * CODES + text.charCodeAt(at + 1)]
  for (const row of beginning?.rows ?? []) {
    const span = (memo.blocked?.get(row) ?? 0) > at ? undefined : rowAt(row, text, at, memo)
    if (span) return span
  }
  return undefined
}

const TILDED: readonly SecretValue[] = SECRET_VALUES.filter(({ before }) => before !== undefined)

/** Returns the secret whose row starts before a `~` at a position. */
export function tildedAt(text: string, at: number): Span | undefined {
  for (const row of TILDED) {
    const start = at - 1 - (row.before ?? 0)
    const end = start >= 0 && text.startsWith(row.starts[0] ?? '', at - 1) ? matchEnd(row, text, start) : -1
    if (end !== -1) return { start, end, name: row.name }
  }
  return undefined
}

function rowAt(row: SecretValue, text: string, at: number, memo: ValueMemo): Span | undefined {
  const end = matchEnd(row, text, at)
  if (end === -1) {
    if (row.severalParts) (memo.blocked ??= new Map<SecretValue, number>()).set(row, wordEnd(text, at))
    return undefined
  }
  const isKey = row.name === 'private-key'
  return {
    start: isKey ? dashesBefore(text, at) : at,
    end: isKey ? privateKeyEnd(text, end, memo) : end,
    name: row.name,
  }
}

function matchEnd({ pattern, holds }: SecretValue, text: string, at: number): number {
  pattern.lastIndex = at
  try {
    if (!pattern.test(text)) return -1
  } catch {
    // The engine has no stack for one word of tens of megabytes.
    return wordEnd(text, at)
  }
  const end = pattern.lastIndex
  return holds && !holds(text.slice(at, end)) ? -1 : end
}

function toPairs(): (RowsOfPair | undefined)[] {
  const pairs = Array.from<RowsOfPair | undefined>({ length: CODES * CODES })
  for (const row of SECRET_VALUES) {
    for (const start of row.before === undefined ? row.starts : []) {
      for (const second of codesOf(start, 1)) {
        const beginning = (pairs[start.charCodeAt(0) * CODES + second] ??= { rows: [], thirds: new Uint8Array(CODES) })
        if (!beginning.rows.includes(row)) beginning.rows.push(row)
        for (const third of codesOf(start, 2)) beginning.thirds[third] = 1
      }
    }
  }
  return pairs
}

/** Returns the possible characters at a position of a start: after its end any, or any digit if the start is a digit. */
function codesOf(start: string, at: number): readonly number[] {
  if (at < start.length) return [start.charCodeAt(at)]
  return /^\d$/.test(start) ? DIGITS : ALL_CODES
}

function wordEnd(text: string, at: number): number {
  let end = at
  while (isWordCode(text.charCodeAt(end))) end++
  return end
}

const MAX_DASHES = 5

function dashesBefore(text: string, at: number): number {
  let start = at
  while (start > at - MAX_DASHES && text.charCodeAt(start - 1) === DASH) start--
  return start
}

const END_LINE = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
/** A line of base64 after a beginning without an end. Line breaks may be escaped. */
const KEY_LINE = /(?:\s|\\{1,4}[nr]){1,8}[A-Za-z0-9+/=]{16,4096}/y

/** Returns the end of a private key. Each end is searched for once, so that many beginnings without an end cost no more. */
function privateKeyEnd(text: string, from: number, memo: ValueMemo): number {
  if (memo.keyEnd.start < from) {
    END_LINE.lastIndex = from
    const start = END_LINE.exec(text)?.index
    memo.keyEnd = start === undefined ? { start: Infinity, end: -1 } : { start, end: END_LINE.lastIndex }
  }
  if (memo.keyEnd.end !== -1) return memo.keyEnd.end
  let end = from
  for (KEY_LINE.lastIndex = from; KEY_LINE.test(text);) end = KEY_LINE.lastIndex
  return end
}
