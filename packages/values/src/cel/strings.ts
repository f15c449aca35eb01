import { createFind, findLast } from '../find-text.ts'
import { spend, type Work } from '../work.ts'
import { CelError, stepsOfText } from './values.ts'

/** Counts the steps of a search, which takes linear time. */
function spendOnSearch(work: Work, text: string, wanted: string): void {
  spend(work, text.length + wanted.length)
}

/** Returns the number of code points. A lone surrogate counts as one. */
export function sizeOfText(work: Work, text: string): number {
  spend(work, stepsOfText(text))
  return countPoints(text, text.length)
}

function countPoints(text: string, end: number): number {
  let pairs = 0
  for (let i = 1; i < end; i++)
    if (isHigh(text.charCodeAt(i - 1)) && isLow(text.charCodeAt(i))) {
      pairs++
      i++
    }
  return end - pairs
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

/** Returns the offset of the code point at an index. @throws {CelError} outside the text; its end is allowed */
function unitAt(text: string, point: bigint): number {
  let at = 0
  for (let left = point < 0n || point > BigInt(text.length) ? Infinity : Number(point); left > 0; left--) {
    if (at >= text.length) throw new CelError(`index out of range: ${point}`)
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1
  }
  return at
}

export function contains(work: Work, text: string, wanted: string): boolean {
  spendOnSearch(work, text, wanted)
  return createFind(wanted)(text, 0) !== -1
}

export function startsWith(work: Work, text: string, wanted: string): boolean {
  spend(work, stepsOfText(wanted))
  return text.startsWith(wanted)
}

export function endsWith(work: Work, text: string, wanted: string): boolean {
  spend(work, stepsOfText(wanted))
  return text.endsWith(wanted)
}

export function charAt(work: Work, text: string, index: bigint): string {
  spend(work, stepsOfText(text))
  const at = unitAt(text, index)
  return at === text.length ? '' : String.fromCodePoint(text.codePointAt(at) as number)
}

export function indexOf(work: Work, text: string, wanted: string, from = 0n): bigint {
  spendOnSearch(work, text, wanted)
  return pointAt(text, createFind(wanted)(text, unitAt(text, from)))
}

export function lastIndexOf(work: Work, text: string, wanted: string, to?: bigint): bigint {
  spendOnSearch(work, text, wanted)
  return pointAt(text, findLast(text, wanted, to === undefined ? text.length : unitAt(text, to)))
}

function pointAt(text: string, unit: number): bigint {
  return BigInt(unit <= 0 ? unit : countPoints(text, unit))
}

export function substring(work: Work, text: string, start: bigint, end?: bigint): string {
  spend(work, 2 * stepsOfText(text))
  if (end !== undefined && end < start) throw new CelError(`index out of range: ${end}`)
  return text.slice(unitAt(text, start), end === undefined ? undefined : unitAt(text, end))
}

/** Changes ASCII letters only. */
export function lowerAscii(work: Work, text: string): string {
  spend(work, text.length)
  return NOT_ASCII.test(text)
    ? mapUnits(work, text, (unit) => (unit >= 65 && unit <= 90 ? unit + 32 : unit))
    : text.toLowerCase()
}

export function upperAscii(work: Work, text: string): string {
  spend(work, text.length)
  return NOT_ASCII.test(text)
    ? mapUnits(work, text, (unit) => (unit >= 97 && unit <= 122 ? unit - 32 : unit))
    : text.toUpperCase()
}

const NOT_ASCII = /[^\0-\x7f]/
const CHUNK = 4096

/** Steps in addition to those of the characters. */
const MAP_STEPS = 60

function mapUnits(work: Work, text: string, map: (unit: number) => number): string {
  spend(work, MAP_STEPS + 2 * text.length)
  const chunks: string[] = []
  for (let start = 0; start < text.length; start += CHUNK) {
    const units = new Uint16Array(Math.min(CHUNK, text.length - start))
    for (let i = 0; i < units.length; i++) units[i] = map(text.charCodeAt(start + i))
    chunks.push(Reflect.apply(String.fromCharCode, undefined, units) as string)
  }
  return chunks.join('')
}

/** The Unicode White_Space characters, which include U+0085 but not U+FEFF. */
const WHITE: ReadonlySet<number> = new Set(
  [0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0x20].concat(
    Array.from({ length: 5 }, (_, i) => 0x09 + i),
    Array.from({ length: 11 }, (_, i) => 0x2000 + i),
  ),
)

export function trim(work: Work, text: string): string {
  spend(work, text.length)
  let [start, end] = [0, text.length]
  while (start < end && WHITE.has(text.charCodeAt(start))) start++
  while (end > start && WHITE.has(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

export function reverse(work: Work, text: string): string {
  spend(work, 10 * text.length)
  return Array.from(text).toReversed().join('')
}

/** `limit`: the most parts; negative for all. */
export function split(work: Work, text: string, separator: string, limit = -1n): readonly string[] {
  spendOnSearch(work, text, separator)
  if (limit === 0n || (text === '' && separator === '')) return []
  const most = limit < 0n ? Infinity : Number(limit)
  return [...pieces(work, text, separator, most - 1)]
}

/** `limit`: the most replacements; negative for all. */
export function replace(work: Work, text: string, wanted: string, by: string, limit = -1n): string {
  spendOnSearch(work, text, wanted)
  const most = limit < 0n ? Infinity : Number(limit)
  const parts = [...pieces(work, text, wanted, most, wanted === '')]
  spend(work, parts.length * stepsOfText(by))
  return parts.join(by)
}

/** Steps for each part of a split text. */
const PIECE_STEPS = 10

/** Yields the parts between separators, for at most `cuts` separators. An empty separator splits between all characters. */
function* pieces(work: Work, text: string, separator: string, cuts: number, atEnds = false): Generator<string> {
  const find = separator === '' ? nextPoint : createFind(separator)
  let [start, left] = [0, cuts]
  if (atEnds && left-- > 0) yield ''
  while (left-- > 0) {
    spend(work, PIECE_STEPS)
    const at = find(text, start)
    if (at === -1 || (separator === '' && at >= text.length && !atEnds)) break
    yield text.slice(start, at)
    start = at + separator.length
    if (separator === '' && at >= text.length) break
  }
  yield text.slice(start)
}

function nextPoint(text: string, from: number): number {
  if (from >= text.length) return -1
  return from + (isHigh(text.charCodeAt(from)) && isLow(text.charCodeAt(from + 1)) ? 2 : 1)
}

export function join(work: Work, list: readonly unknown[], separator = ''): string {
  spend(work, list.length * stepsOfText(separator))
  for (const item of list) {
    if (typeof item !== 'string') throw new CelError('join() wants a list of texts')
    spend(work, stepsOfText(item))
  }
  return list.join(separator)
}
