import { CelProblem } from './tree.ts'

/** Parses a text or bytes in quotes that start at `open`. `prefix`: '', `r`, `b` or `br`. */
export function readQuoted(text: string, open: number, prefix: string, start: number) {
  const mark = text.startsWith((text[open] ?? '').repeat(3), open) ? text.slice(open, open + 3) : (text[open] ?? '')
  const isRaw = prefix.endsWith('r')
  const inner = open + mark.length
  const close = findClose(text, inner, mark, isRaw)
  if (close === undefined) throw new CelProblem('Unterminated string', start)
  const parts = isRaw ? [text.slice(inner, close)] : unescaped(text, inner, close, prefix !== '')
  return { value: prefix.startsWith('b') ? toBytes(parts) : textOf(parts), end: close + mark.length }
}

function findClose(text: string, from: number, mark: string, isRaw: boolean): number | undefined {
  for (let at = from; at < text.length; at++) {
    if (text.startsWith(mark, at)) return at
    if (text[at] === '\\' && !isRaw) at++
    else if (mark.length === 1 && (text[at] === '\n' || text[at] === '\r')) return undefined
  }
  return undefined
}

const SIMPLE: ReadonlyMap<string, string> = new Map([
  ...['\\', '?', '"', "'", '`'].map((one) => [one, one] as const),
  ...['a\x07', 'b\b', 'f\f', 'n\n', 'r\r', 't\t', 'v\v'].map((two) => [two.charAt(0), two.charAt(1)] as const),
])

const CODED: readonly RegExp[] = [/[xX]([0-9a-fA-F]{2})/y, /u([0-9a-fA-F]{4})/y, /U([0-9a-fA-F]{8})/y]
const OCTAL = /[0-3][0-7]{2}/y

/** Yields the characters between two offsets. A number is from an escape: a code point in a text, a byte in bytes. */
function unescaped(text: string, from: number, to: number, isBytes: boolean): readonly (string | number)[] {
  const parts: (string | number)[] = []
  let at = from
  while (at < to) {
    const next = text.indexOf('\\', at)
    if (next === -1 || next >= to) break
    parts.push(text.slice(at, next))
    const { part, end } = readEscape(text, next, isBytes)
    parts.push(part)
    at = end
  }
  return [...parts, text.slice(at, to)]
}

function readEscape(text: string, at: number, isBytes: boolean): { part: string | number; end: number } {
  const simple = SIMPLE.get(text[at + 1] ?? '')
  if (simple !== undefined) return { part: simple, end: at + 2 }
  OCTAL.lastIndex = at + 1
  const octal = OCTAL.exec(text)
  if (octal) return { part: Number.parseInt(octal[0], 8), end: OCTAL.lastIndex }
  for (const pattern of isBytes ? CODED.slice(0, 1) : CODED) {
    pattern.lastIndex = at + 1
    const code = Number.parseInt(pattern.exec(text)?.[1] ?? '', 16)
    if (code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) return { part: code, end: pattern.lastIndex }
  }
  throw new CelProblem(`Invalid escape sequence: ${text.slice(at, at + 2)}`, at)
}

function textOf(parts: readonly (string | number)[]): string {
  return parts.map((part) => (typeof part === 'number' ? String.fromCodePoint(part) : part)).join('')
}

function toBytes(parts: readonly (string | number)[]): Uint8Array {
  const encoder = new TextEncoder()
  return Uint8Array.from(parts.flatMap((part) => (typeof part === 'number' ? [part] : [...encoder.encode(part)])))
}
