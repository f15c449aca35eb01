import { DASH, isWordCode } from './characters.ts'
import type { Span } from './spans.ts'
import { SECRET_VALUES, type SecretValue } from './secret-values.ts'

/** Gives the secret that begins at one place of a text, which must be asked in growing order. */
export type ValueAt = (at: number) => Span | undefined

const CODES = 128
/** Rows by their first two characters: nearly every other word is told apart by one look into this. */
const ROWS_BY_PAIR: readonly (readonly SecretValue[] | undefined)[] = toPairs()

export function createValueScan(text: string): ValueAt {
  const blocked = new Map<SecretValue, number>()
  const nextEnd = createNextEnd(text)
  return (at) => {
    const rows = rowsAt(text, at)
    if (rows === undefined) return undefined
    for (const row of rows) {
      if ((blocked.get(row) ?? 0) > at) continue
      const end = matchEnd(row, text, at)
      if (end === -1) {
        if (row.severalParts && row.starts.some((start) => text.startsWith(start, at)))
          blocked.set(row, wordEnd(text, at))
        continue
      }
      if (row.name === 'private-key') return { start: dashesBefore(text, at), end: nextEnd(end), name: row.name }
      return { start: at, end, name: row.name }
    }
    return undefined
  }
}

/** Whether a secret may begin with these two characters. */
export function mayBegin(first: number, second: number): boolean {
  return first < CODES && second < CODES && ROWS_BY_PAIR[first * CODES + second] !== undefined
}

function rowsAt(text: string, at: number): readonly SecretValue[] | undefined {
  const first = text.charCodeAt(at)
  const second = text.charCodeAt(at + 1)
  return first < CODES && second < CODES ? ROWS_BY_PAIR[first * CODES + second] : undefined
}

function matchEnd({ pattern, holds }: SecretValue, text: string, at: number): number {
  pattern.lastIndex = at
  if (!pattern.test(text)) return -1
  const end = pattern.lastIndex
  return holds && !holds(text.slice(at, end)) ? -1 : end
}

function toPairs(): (SecretValue[] | undefined)[] {
  const pairs = Array.from<SecretValue[] | undefined>({ length: CODES * CODES })
  for (const row of SECRET_VALUES) {
    for (const start of row.starts) {
      const first = start.charCodeAt(0) * CODES
      const [from, to] = start.length > 1 ? [start.charCodeAt(1), start.charCodeAt(1)] : [0, CODES - 1]
      for (let second = from; second <= to; second++) {
        const rows = (pairs[first + second] ??= [])
        if (!rows.includes(row)) rows.push(row)
      }
    }
  }
  return pairs
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
/** Lines of base64 behind a beginning without an end; line breaks may be escaped. */
const KEY_LINES = /(?:(?:\s|\\{1,4}[nr]){1,8}[A-Za-z0-9+/=]{16,})*/y

/** Gives where the key that begins at a place ends. Looks each end up once, so that many beginnings without an end cost no more. */
function createNextEnd(text: string): (from: number) => number {
  let next = -1
  let nextStart = -1
  return (from) => {
    if (nextStart < from && next !== Infinity) {
      END_LINE.lastIndex = from
      const found = END_LINE.exec(text)
      nextStart = found ? found.index : Infinity
      next = found ? END_LINE.lastIndex : Infinity
    }
    if (next !== Infinity) return next
    KEY_LINES.lastIndex = from
    KEY_LINES.test(text)
    return KEY_LINES.lastIndex
  }
}
