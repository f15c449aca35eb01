/** How much a JSON text may hold. What is not named is not bounded. */
export interface JsonBounds {
  /** Arrays and objects inside each other. */
  readonly depth: number
  /** Arrays, objects, texts, numbers and so on, together. */
  readonly values?: number
  /** Members of all objects together. */
  readonly keys?: number
  /** Characters of one key, as it is written. */
  readonly keyLength?: number
}

/** The first bound that a text exceeds, with its limit. */
export interface JsonExcess {
  readonly bound: keyof JsonBounds
  readonly limit: number
}

export type JsonMeasure = { readonly members: number; readonly excess?: undefined } | { readonly excess: JsonExcess }

/**
 * Measures a JSON text without parsing it, and stops at the first bound that it exceeds.
 *
 * `members` counts the colons outside of strings: the members that its objects are written with. `JSON.parse` takes any
 * depth and any number of values, at seconds and gigabytes, and whatever walks the value afterwards costs as much
 * again, so a text from outside is measured first.
 */
export function measureJson(
  text: string,
  { depth: maxDepth, values: maxValues = Infinity, keys: maxKeys = Infinity, keyLength = Infinity }: JsonBounds,
): JsonMeasure {
  let members = 0
  // Each value but the outermost follows a comma, or is the first in an array or object. Empty ones count for one too many.
  let values = 1
  let depth = 0
  let stringLength = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const end = endOfString(text, i)
        stringLength = end - i - 1
        i = end
        break
      }
      case COLON:
        if (++members > maxKeys) return exceeds('keys', maxKeys)
        if (stringLength > keyLength) return exceeds('keyLength', keyLength)
        break
      case BRACE:
      case BRACKET:
        if (++depth > maxDepth) return exceeds('depth', maxDepth)
        if (++values > maxValues) return exceeds('values', maxValues)
        break
      case COMMA:
        if (++values > maxValues) return exceeds('values', maxValues)
        break
      case BRACE_END:
      case BRACKET_END:
        depth--
    }
  }
  return { members }
}

/** Says what a text does, as the end of a sentence about it. */
export function describeExcess({ bound, limit }: JsonExcess): string {
  return EXCESSES[bound](limit)
}

const EXCESSES: Readonly<Record<keyof JsonBounds, (limit: number) => string>> = {
  depth: (limit) => `is nested more than ${limit} levels deep`,
  values: (limit) => `holds more than ${limit} values`,
  keys: (limit) => `holds more than ${limit} keys`,
  keyLength: (limit) => `holds a key of more than ${limit} characters`,
}

function exceeds(bound: keyof JsonBounds, limit: number): JsonMeasure {
  return { excess: { bound, limit } }
}

/** Where a value stands in a JSON text, with the blanks around it. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Finds the values at some paths of keys in a JSON text, in one pass and without parsing it.
 *
 * A path is missing from the answer if nothing is there, if one of its keys is written with escapes, and if it occurs
 * twice, as nobody can say which of the two is meant.
 *
 * @example
 * findMembers('{"id":7,"result":{"tools":[]}}', ['id', 'result.tools']).get('result.tools') // { start: 26, end: 28 }
 */
export function findMembers<Path extends string>(text: string, paths: readonly Path[]): ReadonlyMap<Path, Span> {
  const wanted = new Map<string, Path>(paths.map((path) => [path, path]))
  const maxDepth = Math.max(...paths.map((path) => path.split('.').length))
  const found = new Map<Path, Span>()
  const twice = new Set<Path>()
  /** The path of the member under way at each depth; `undefined` in an array. */
  const under: (string | undefined)[] = []
  /** Where the wanted member under way at each depth begins. */
  const starts: (number | undefined)[] = []
  let depth = 0
  let key: Span = { start: 0, end: 0 }
  const begin = (at: number): void => {
    const parent = depth === 1 ? '' : under[depth - 1]
    const name = text.slice(key.start, key.end)
    under[depth] = parent === undefined || name.includes('.') ? undefined : depth === 1 ? name : `${parent}.${name}`
    starts[depth] = wanted.has(under[depth] ?? '') ? at : undefined
  }
  const end = (at: number): void => {
    const path = wanted.get(under[depth] ?? '')
    const start = starts[depth]
    if (path !== undefined && start !== undefined) {
      if (found.has(path)) twice.add(path)
      found.set(path, { start, end: at })
    }
    under[depth] = starts[depth] = undefined
  }
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const last = endOfString(text, i)
        if (depth <= maxDepth) key = { start: i + 1, end: last }
        i = last
        break
      }
      case COLON:
        if (depth <= maxDepth) begin(i + 1)
        break
      case BRACE:
      case BRACKET:
        if (++depth <= maxDepth) under[depth] = starts[depth] = undefined
        break
      case COMMA:
        if (depth <= maxDepth) end(i)
        break
      case BRACE_END:
      case BRACKET_END:
        if (depth <= maxDepth) end(i)
        depth--
    }
  }
  for (const path of twice) found.delete(path)
  return found
}

/** Splits the text of a JSON array into those of its items; `undefined` if it is not the text of an array. */
export function splitItems(text: string): readonly string[] | undefined {
  const list = text.trim()
  if (list.charCodeAt(0) !== BRACKET || list.charCodeAt(list.length - 1) !== BRACKET_END) return undefined
  const items: string[] = []
  let depth = 0
  let start = 1
  for (let i = 0; i < list.length; i++) {
    switch (list.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(list, i)
        break
      case BRACE:
      case BRACKET:
        depth++
        break
      case COMMA:
        if (depth !== 1) break
        items.push(list.slice(start, i))
        start = i + 1
        break
      case BRACE_END:
      case BRACKET_END:
        depth--
    }
  }
  const last = list.slice(start, -1)
  return items.length === 0 && last.trim() === '' ? [] : [...items, last]
}

/** The characters that structure a JSON text, as UTF-16 units. */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const BRACE = 0x7b
const BRACE_END = 0x7d
const BRACKET = 0x5b
const BRACKET_END = 0x5d

/** Returns the position of the quote that ends the string begun at `start`; of the end of the text if none does. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1)
  if (end === -1) return text.length
  if (text.charCodeAt(end - 1) !== BACKSLASH) return end
  // Searching again after each escaped quote costs more than looking at each character.
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) return i
  }
  return text.length
}
