import { findEach, findText, type Work } from '@toolgate/values'

/** Separates the texts, because no normal form contains a line feed. */
const BETWEEN = '\n'
/** The least characters for which the filter is used. Shorter texts are searched faster without it. */
const MIN_FILTERED = 2048
const GRAM = 4
/** Shorter values are found so fast that the steps of one look cover the cost. */
const MIN_COUNTED = 64

/**
 * The texts of one origin, in one string, with a filter of its four-character sequences. A value that is in no text is
 * usually ruled out without searching.
 */
export class SeenText {
  readonly #maxBytes: number
  readonly #filterBits: number
  #text = ''
  #wide = false
  #filter: Uint32Array | undefined
  #full = false

  /** The filter takes an eighth of `maxBytes`, or a little more. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#filterBits = Math.max(5, Math.ceil(Math.log2(maxBytes)))
  }

  /** Whether there was no room for a text. */
  get full(): boolean {
    return this.#full
  }

  get bytes(): number {
    return this.#text.length * (this.#wide ? 2 : 1) + (this.#filter?.byteLength ?? 0)
  }

  /** All texts, each on a line. */
  get text(): string {
    return this.#text
  }

  /** Stops adding texts. */
  close(): void {
    this.#full = true
  }

  /** Adds a text of one or more lines; adds nothing if there is no room. */
  add(text: string): boolean {
    if (this.#full) return false
    const wide = this.#wide || WIDE.test(text)
    const length = this.#text.length + BETWEEN.length + text.length
    if (length * (wide ? 2 : 1) + this.#filterBytesAt(length) > this.#maxBytes) {
      this.#full = true
      return false
    }
    const from = this.#text.length
    // Joining copies, because a substring would keep the whole output in memory.
    this.#text = from === 0 ? compact(text, wide) : [this.#text, compact(text, wide)].join(BETWEEN)
    this.#wide = wide
    this.#fillFilter(from)
    return true
  }

  /** Returns whether a value occurs in the texts. Counts the search in `work`, which may fall below 0. */
  includes(value: string, work?: Work): boolean {
    return this.#isSearched(value, work) && findText(this.#text, value, 0) !== -1
  }

  /** Returns all positions of a value. Counts the search in `work`, which may fall below 0. */
  places(value: string, work?: Work): Iterable<number> {
    return this.#isSearched(value, work) ? findEach(this.#text, value) : []
  }

  /** Returns whether the filter permits a value, which must then be searched. */
  #isSearched(value: string, work?: Work): boolean {
    if (!this.#mayHold(value)) return false
    if (work && value.length > MIN_COUNTED) work.left -= this.#text.length
    return true
  }

  #mayHold(value: string): boolean {
    const filter = this.#filter
    if (filter === undefined) return true
    const shift = 32 - this.#filterBits
    for (let i = 0; i + GRAM <= value.length; i++) {
      const bit = gramAt(value, i) >>> shift
      if (((filter[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false
    }
    return true
  }

  #filterBytesAt(length: number): number {
    return length < MIN_FILTERED ? 0 : 2 ** this.#filterBits / 8
  }

  #fillFilter(from: number): void {
    const text = this.#text
    if (text.length < MIN_FILTERED) return
    const start = this.#filter === undefined ? 0 : from
    const filter = (this.#filter ??= new Uint32Array(2 ** this.#filterBits / 32))
    const shift = 32 - this.#filterBits
    for (let i = start; i + GRAM <= text.length; i++) {
      const bit = gramAt(text, i) >>> shift
      filter[bit >>> 5] = (filter[bit >>> 5] ?? 0) | (1 << (bit & 31))
    }
  }
}

const WIDE = /[^\0-\xFF]/
const AT_ONCE = 4096

/** Returns a text with one byte per character if possible, because a part of a wide text stays wide. */
function compact(text: string, wide: boolean): string {
  if (wide) return text
  const parts: string[] = []
  for (let i = 0; i < text.length; i += AT_ONCE) {
    const units = new Uint8Array(Math.min(AT_ONCE, text.length - i))
    for (let j = 0; j < units.length; j++) units[j] = text.charCodeAt(i + j)
    parts.push(String.fromCharCode.apply(undefined, units as unknown as number[]))
  }
  return parts.join('')
}

/** Returns a hash of four characters, its upper bits the best. */
function gramAt(text: string, i: number): number {
  const low = text.charCodeAt(i) ^ (text.charCodeAt(i + 1) << 8)
  const high = text.charCodeAt(i + 2) ^ (text.charCodeAt(i + 3) << 8)
  return Math.imul(Math.imul(low, 0x9e_37_79_b1) ^ high, 0x85_eb_ca_6b)
}
