/** The limits of a JSON text. An absent bound means no limit. */
export interface JsonBounds {
  /** The deepest nesting of arrays and objects. */
  readonly depth: number
  /** All values: arrays, objects, texts, numbers, booleans and nulls. */
  readonly values?: number
  /** The members of all objects together. */
  readonly keys?: number
  /** Characters of one key, including escapes. */
  readonly keyLength?: number
}

/** The first bound that a text exceeds, with its limit. */
export interface JsonExcess {
  readonly bound: keyof JsonBounds
  readonly limit: number
}

type JsonMeasure =
  | { readonly members: number; readonly hasEscapedKey: boolean; readonly excess?: undefined }
  | { readonly hasEscapedKey?: undefined; readonly excess: JsonExcess }

/**
 * Measures a JSON text without parsing it, and stops at the first bound that it exceeds.
 *
 * `members` counts the colons outside of strings, duplicate keys included. `hasEscapedKey` is true if a key holds a
 * backslash. Parsing a hostile text can take seconds and
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
  let stringStart = 0
  let stringEnd = 0
  let hasEscapedKey = false
  // The first backslash after the start of the last key: each is searched once, so the whole text is searched once.
  let backslash = positionOf(text, '\\', 0)
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        stringStart = i
        stringEnd = i = endOfString(text, i)
        break
      case COLON:
        if (++members > maxKeys) return exceeds('keys', maxKeys)
        if (stringEnd - stringStart - 1 > keyLength) return exceeds('keyLength', keyLength)
        if (backslash < stringStart) backslash = positionOf(text, '\\', stringStart)
        if (backslash < stringEnd) hasEscapedKey = true
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
  return { members, hasEscapedKey }
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
export function endOfString(text: string, start: number): number {
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

/** Returns the text's length if there is none. */
function positionOf(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from)
  return at === -1 ? text.length : at
}
