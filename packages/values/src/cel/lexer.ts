import { CelProblem } from './tree.ts'
import { readQuoted } from './quoted.ts'
import { MAX_INT, MAX_UINT, Uint } from './values.ts'

/** A token. The kind of an operator, a bracket or a keyword is its own text. */
export interface Token {
  /** `value`, `number`, `name`, `end`, or the operator. */
  readonly kind: string
  readonly start: number
  readonly end: number
  readonly value?: unknown
}

const OPERATORS = '== != <= >= && || + - * / % < > ! ? : . , ( ) [ ] { }'.split(' ')
const SPACE = /(?:[ \t\n\r\f]|\/\/[^\n]*)*/y
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
const PREFIXED = /(?:[bB]?[rR]?)(?=["'])/y
const NUMBER = /0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?/y
const DOUBLE = /^[^x]*[.eE]/

/**
 * Returns the tokens of a text, in linear time.
 *
 * @throws {CelProblem} for an invalid token
 */
export function readTokens(text: string): readonly Token[] {
  const tokens: Token[] = []
  let at = skip(text, SPACE, 0)
  while (at < text.length) {
    const token = readToken(text, at)
    tokens.push(token)
    at = skip(text, SPACE, token.end)
  }
  tokens.push({ kind: 'end', start: text.length, end: text.length })
  return tokens
}

/** Returns the end of a pattern's match here. */
function skip(text: string, pattern: RegExp, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function readToken(text: string, start: number): Token {
  const prefixed = skip(text, PREFIXED, start)
  if (text[prefixed] === '"' || text[prefixed] === "'") {
    const { value, end } = readQuoted(text, prefixed, text.slice(start, prefixed).toLowerCase(), start)
    return { kind: 'value', start, end, value }
  }
  const named = skip(text, NAME, start)
  if (named > start) return wordOf(text.slice(start, named), start, named)
  const counted = skip(text, NUMBER, start)
  if (counted > start)
    return { kind: 'number', start, end: counted, value: numberOf(text.slice(start, counted), start) }
  const operator = OPERATORS.find((one) => text.startsWith(one, start))
  if (operator === undefined) throw new CelProblem(`Unexpected character: ${characterAt(text, start)}`, start)
  return { kind: operator, start, end: start + operator.length }
}

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0)
}

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

function wordOf(word: string, start: number, end: number): Token {
  if (WORDS.has(word)) return { kind: 'value', start, end, value: WORDS.get(word) }
  return word === 'in' ? { kind: 'in', start, end } : { kind: 'name', start, end, value: word }
}

/** Accepts 2^63, although it is too large for an `int`, because a minus may precede it. */
function numberOf(digits: string, start: number): number | bigint | Uint {
  const isUint = /[uU]$/.test(digits)
  if (DOUBLE.test(digits)) {
    const value = isUint ? Number.NaN : Number(digits)
    if (!Number.isFinite(value)) throw new CelProblem(`Invalid number: ${digits}`, start)
    return value
  }
  const value = BigInt(isUint ? digits.slice(0, -1) : digits)
  if (value > (isUint ? MAX_UINT : MAX_INT + 1n)) throw new CelProblem(`Invalid integer: ${digits}`, start)
  return isUint ? new Uint(value) : value
}
