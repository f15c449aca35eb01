import { BACKSLASH, BRACE, BRACE_END, BRACKET, BRACKET_END, COLON, COMMA, QUOTE } from '@toolgate/values/json'

/** The kind of a scanned message: the answer to a request with a numeric id, or another message. */
type Scanned = { readonly kind: 'answer'; readonly id: number } | { readonly kind: 'other' }

/** The maximum length of a relevant key. */
const MAX_KEY_CHARS = 16
/** The ids of our requests are small integers. */
const ID = /^\d{1,15}$/

/**
 * Finds which request a JSON-RPC message answers, from its text in pieces. It keeps no pieces.
 *
 * It follows the structure of the JSON text. A search for `"id":` would also find text in a result.
 */
export class MessageScan {
  #depth = 0
  #inString = false
  /** Whether the next character of the string is escaped. */
  #isEscaped = false
  /** The beginning of the latest string at the top level of the message. */
  #string = ''
  #key: string | undefined
  #idText = ''
  #hasId = false
  #hasMethod = false
  #isAmbiguous = false
  #hasEnded = false

  /** Reads the next piece. Returns `false` if {@link end} will certainly return `undefined`. */
  push(text: string): boolean {
    for (let i = 0; i < text.length; i++) {
      if (this.#inString) i = this.#readString(text, i)
      else this.#readUnit(text.charCodeAt(i))
    }
    return !this.#isAmbiguous
  }

  /** Returns the kind of the message, or `undefined` if it is not certain. */
  end(): Scanned | undefined {
    if (!this.#hasEnded || this.#isAmbiguous) return undefined
    if (this.#hasMethod) return { kind: 'other' }
    return ID.test(this.#idText) ? { kind: 'answer', id: Number(this.#idText) } : undefined
  }

  #readUnit(unit: number): void {
    switch (unit) {
      case QUOTE:
        this.#inString = true
        this.#string = ''
        if (this.#depth === 0) this.#isAmbiguous = true
        break
      case COLON:
        if (this.#depth === 1) this.#onKey(this.#string)
        break
      case COMMA:
        if (this.#depth === 1) this.#key = undefined
        break
      case BRACE:
      case BRACKET:
        if (this.#depth === 0 && (unit === BRACKET || this.#hasEnded)) this.#isAmbiguous = true
        this.#depth++
        break
      case BRACE_END:
      case BRACKET_END:
        this.#depth--
        if (this.#depth === 0) this.#hasEnded = true
        break
      case SPACE:
      case RETURN:
        break
      default:
        if (this.#depth === 0) this.#isAmbiguous = true
        if (this.#depth === 1 && this.#key === 'id' && this.#idText.length < MAX_KEY_CHARS)
          this.#idText += String.fromCharCode(unit)
    }
  }

  #onKey(key: string): void {
    // An escaped key may spell `id` or `method`, and a second `id` may replace the first.
    if (key.includes('\\') || (key === 'id' && this.#hasId)) this.#isAmbiguous = true
    if (key === 'id') this.#hasId = true
    if (key === 'method') this.#hasMethod = true
    this.#key = key
  }

  /** Returns the position of the closing quote of the string, or of the last character of the text. */
  #readString(text: string, start: number): number {
    for (let from = start; ;) {
      const quote = text.indexOf('"', from)
      const end = quote === -1 ? text.length : quote
      const isEscaped = this.#escapes(text, start, end)
      if (quote !== -1 && isEscaped) {
        from = quote + 1
        continue
      }
      if (this.#depth === 1 && this.#string.length <= MAX_KEY_CHARS)
        this.#string += text.slice(start, Math.min(end, start + MAX_KEY_CHARS + 1))
      this.#inString = quote === -1
      this.#isEscaped = this.#inString && isEscaped
      if (!this.#inString && this.#depth === 1 && this.#key === 'id') this.#idText = this.#string
      return this.#inString ? text.length : end
    }
  }

  /** Whether an odd number of backslashes precedes a position of a string that continues at `start`. */
  #escapes(text: string, start: number, end: number): boolean {
    let first = end
    while (first > start && text.charCodeAt(first - 1) === BACKSLASH) first--
    const before = first === start && this.#isEscaped ? 1 : 0
    return (end - first + before) % 2 === 1
  }
}

const SPACE = 0x20
const RETURN = 0x0d
