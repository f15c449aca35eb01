import { BRACE, BRACE_END, BRACKET, BRACKET_END, COLON, COMMA, endOfString, QUOTE } from './json-scan.ts'

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
