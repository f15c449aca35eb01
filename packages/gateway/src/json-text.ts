/** How much a JSON text may hold. An absent bound means no limit. */
export interface JsonBounds {
  /** Nested arrays and objects. */
  readonly depth: number
  /** All values: arrays, objects, texts, numbers, booleans and nulls. */
  readonly values?: number
  /** The members of all objects. */
  readonly keys?: number
  /** Characters of one key, with its escapes. */
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
 * `members` counts the colons outside of strings, duplicate keys included. Parsing a hostile text can take seconds and
 * gigabytes, so text from outside is measured first.
 */
export function measureJson(
  text: string,
  { depth: maxDepth, values: maxValues = Infinity, keys: maxKeys = Infinity, keyLength = Infinity }: JsonBounds,
): JsonMeasure {
  let members = 0
  // Every inner value follows a comma or an opening bracket. Empty arrays and objects count one too many.
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

/** Returns the rest of a sentence about the text: `is nested more than 64 levels deep`. */
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

/** The position of a value in a JSON text, with the white space around it. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Finds the values at some paths of keys in a JSON text, in one pass and without parsing it.
 *
 * A path is missing from the result if it is absent, if one of its keys is escaped, or if it occurs twice, because then
 * it is ambiguous.
 *
 * @example
 * findMembers('{"id":7,"result":{"tools":[]}}', ['id', 'result.tools']).get('result.tools') // { start: 26, end: 28 }
 */
export function findMembers<Path extends string>(text: string, paths: readonly Path[]): ReadonlyMap<Path, Span> {
  const wanted = new Map<string, Path>(paths.map((path) => [path, path]))
  const maxDepth = Math.max(...paths.map((path) => path.split('.').length))
  const found = new Map<Path, Span>()
  const twice = new Set<Path>()
  /** The path of the current member at each depth; `undefined` in an array. */
  const under: (string | undefined)[] = []
  /** The start of the current wanted member at each depth. */
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

/** Returns the texts of the items of a JSON array, or `undefined` if the text is not an array. */
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
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COLON = 0x3a
export const COMMA = 0x2c
export const BRACE = 0x7b
export const BRACE_END = 0x7d
export const BRACKET = 0x5b
export const BRACKET_END = 0x5d

/** Returns the position of the closing quote of the string at `start`, or the text's length if there is none. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1)
  if (end === -1) return text.length
  if (text.charCodeAt(end - 1) !== BACKSLASH) return end
  // With escaped quotes, checking each character is faster than searching again and again.
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) return i
  }
  return text.length
}
