import { JsonFault } from './json-fault.ts'
import { BRACE, BRACE_END, BRACKET, BRACKET_END, COLON, COMMA, endOfString, QUOTE } from './json-measure.ts'

/**
 * How integers beyond ±(2^53 − 1) are read: `exact` as a `bigint`, `double` as the nearest double. Other numbers are
 * always the nearest double.
 */
export type JsonIntegers = 'double' | 'exact'

/**
 * Parses a JSON text (RFC 8259) like a correct `JSON.parse`, but rejects what `JSON.parse` changes silently: a duplicate
 * key, and a number that is beyond a double.
 *
 * V8 13.6 (Node 24) misreads keys: after `{"zz":1,"pat\\":1}` was parsed, it reads the key of `{"zz":1,"pat\u0068":1}` as
 * `pat\`. So V8 parses only single texts and numbers here, never an object.
 *
 * Check the depth with `measureJson` first, because each level uses the stack.
 *
 * @throws {JsonFault} for an invalid text
 */
export function parseJson(text: string, integers: JsonIntegers = 'double'): unknown {
  return new JsonParser(text, integers).parse()
}

class JsonParser {
  readonly #text: string
  readonly #integers: JsonIntegers
  #at = 0

  constructor(text: string, integers: JsonIntegers) {
    this.#text = text
    this.#integers = integers
  }

  parse(): unknown {
    const value = this.#value()
    this.#next()
    if (this.#at < this.#text.length) throw new JsonFault('not-json')
    return value
  }

  #value(): unknown {
    switch (this.#next()) {
      case BRACE:
        return this.#object()
      case BRACKET:
        return this.#array()
      case QUOTE:
        return this.#string()
      default:
        return this.#scalar()
    }
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    this.#at++
    if (this.#take(BRACE_END)) return object
    do {
      if (this.#next() !== QUOTE) throw new JsonFault('not-json')
      const key = this.#string()
      if (!this.#take(COLON)) throw new JsonFault('not-json')
      if (Object.hasOwn(object, key)) throw new JsonFault('key-twice')
      setOwn(object, key, this.#value())
    } while (this.#take(COMMA))
    if (!this.#take(BRACE_END)) throw new JsonFault('not-json')
    return object
  }

  #array(): unknown[] {
    const array: unknown[] = []
    this.#at++
    if (this.#take(BRACKET_END)) return array
    do array.push(this.#value())
    while (this.#take(COMMA))
    if (!this.#take(BRACKET_END)) throw new JsonFault('not-json')
    return array
  }

  #string(): string {
    const start = this.#at
    this.#at = endOfString(this.#text, start) + 1
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string
    } catch {
      throw new JsonFault('not-json')
    }
  }

  #scalar(): unknown {
    SCALAR.lastIndex = this.#at
    const found = SCALAR.exec(this.#text)
    if (!found) throw new JsonFault('not-json')
    this.#at = SCALAR.lastIndex
    const [token, word, fraction] = found
    if (word !== undefined) return WORDS.get(word)
    const number = Number(token)
    if (!Number.isFinite(number)) throw new JsonFault('number')
    const isDouble = this.#integers === 'double' || fraction !== '' || Number.isSafeInteger(number)
    return isDouble ? number : BigInt(token)
  }

  /** Skips white space, and takes the next character if it is the given one. */
  #take(unit: number): boolean {
    if (this.#next() !== unit) return false
    this.#at++
    return true
  }

  /** Skips white space. Returns the next character, or `NaN` at the end. */
  #next(): number {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at)
      if (unit !== SPACE && unit !== LINE_FEED && unit !== RETURN && unit !== TAB) return unit
      this.#at++
    }
  }
}

/** A word, or a number with its fraction and exponent. */
const SCALAR = /(true|false|null)|-?(?:0|[1-9]\d*)((?:\.\d+)?(?:[eE][+-]?\d+)?)/y
const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])
const SPACE = 0x20
const LINE_FEED = 0x0a
const RETURN = 0x0d
const TAB = 0x09

/** `__proto__` becomes an ordinary key, as with `JSON.parse`. */
function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
