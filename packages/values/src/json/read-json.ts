import { JsonFault } from './json-fault.ts'
import { type JsonBounds, measureJson } from './json-measure.ts'
import { type JsonIntegers, parseJson } from './json-parser.ts'

/**
 * The bounds of all text from outside. Each reader of JSON uses one of these rows.
 *
 * Within the bounds of a request, a call is parsed, copied, validated, hashed and written in a few milliseconds.
 */
export const JSON_BOUNDS = {
  /** A text from a client, a browser, a model or an authorization server. */
  request: { depth: 64, values: 50_000, keys: 10_000, keyLength: 4096 },
  /** One message of a server. */
  answer: { depth: 64, values: 200_000, keys: 50_000 },
  /** One item of a server's list, which is compiled, hashed, compared, searched and listed repeatedly. */
  item: { depth: 60, values: 10_000, keys: 5_000 },
  /** A text that Toolgate wrote. Its values passed the bounds on arrival, and are stored a few levels deeper. */
  own: { depth: 128 },
} as const satisfies Record<string, JsonBounds>

export interface ReadJsonOptions {
  /** Default: the bounds of a request. */
  readonly bounds?: JsonBounds
  /** Default `double`. */
  readonly integers?: JsonIntegers
}

/**
 * Reads a JSON text from outside (RFC 8259). Use it wherever such a text arrives.
 *
 * It ignores a leading byte order mark (§8.1), and rejects a text beyond the bounds, a duplicate key in one object, and a
 * number that is beyond a double, such as `1e400`. A text beyond the bounds is not parsed.
 *
 * @throws {JsonFault} for a rejected text
 * @example
 * readJson('{"a":1,"\\u0061":2}') // throws JsonFault: The text holds a key that occurs twice in one object.
 */
export function readJson(
  given: string,
  { bounds = JSON_BOUNDS.request, integers = 'double' }: ReadJsonOptions = {},
): unknown {
  const text = given.charCodeAt(0) === BYTE_ORDER_MARK ? given.slice(1) : given
  const measure = measureJson(text, bounds)
  if (measure.excess) throw new JsonFault(measure.excess)
  if (measure.hasEscapedKey) return parseJson(text, integers)
  const value = parse(text)
  const found = { members: 0, hasLargeNumber: false }
  inspect(value, found)
  if (found.hasLargeNumber) return parseJson(text, integers)
  if (found.members !== measure.members) throw new JsonFault('key-twice')
  return value
}

/**
 * Reads a JSON text that Toolgate itself wrote, to a store or for another replica. Its keys may come from outside.
 *
 * Only the depth is bounded, and duplicate keys are not detected.
 *
 * @throws {JsonFault} for an invalid text
 */
export function readOwnJson(text: string, integers: JsonIntegers = 'double'): unknown {
  // Without 16 digits in a row, no integer is beyond 2^53.
  if (integers === 'exact' && LONG_INTEGER.test(text)) return readJson(text, { bounds: JSON_BOUNDS.own, integers })
  // Without a backslash, JSON.parse misreads no key.
  if (!text.includes('\\')) return parse(text)
  const { excess, hasEscapedKey } = measureJson(text, JSON_BOUNDS.own)
  if (excess) throw new JsonFault(excess)
  return hasEscapedKey ? parseJson(text) : parse(text)
}

const LONG_INTEGER = /\d{16}/

/**
 * Returns the text of bytes from outside, without a leading byte order mark.
 *
 * @throws {JsonFault} `not-utf8` (RFC 8259 §8.1)
 */
export function readUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch {
    throw new JsonFault('not-utf8')
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })
const BYTE_ORDER_MARK = 0xfeff

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new JsonFault('not-json')
  }
}

/** Counts the own keys of a value and of everything in it, and looks for numbers beyond ±(2^53 − 1). */
function inspect(value: unknown, found: { members: number; hasLargeNumber: boolean }): void {
  if (typeof value === 'number') {
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) found.hasLargeNumber = true
  } else if (typeof value === 'object' && value !== null) {
    const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
    if (parts !== value) found.members += parts.length
    for (const part of parts) inspect(part, found)
  }
}
