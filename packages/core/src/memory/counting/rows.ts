/** The words of a row. A row begins with a time, or with the number of the ring that holds its times instead. */
export const RING = 0
export const LOW = 2
export const HIGH = 3
export const NEWER = 4
export const OLDER = 5
export const NEXT = 6
export const SHAPE = 7

/** No row: rows are counted from 1. */
export const NONE = 0

const CHUNK_BITS = 10
const CHUNK_MASK = (1 << CHUNK_BITS) - 1
const WORD_BITS = 3

/** Where a row's words begin in its chunk. */
export function wordsAt(row: number): number {
  return (row & CHUNK_MASK) << WORD_BITS
}

/** Where a row's time is in its chunk. */
export function timeAt(row: number): number {
  return (row & CHUNK_MASK) << (WORD_BITS - 1)
}

/**
 * Rows of 32 bytes that lie side by side, without holes: 1, 2, 3 … They grow by 32 KB, and give back what they no
 * longer need.
 *
 * A class, as are its users: of closures the engine inlines only those of the first store in a process.
 */
export class Rows {
  readonly #words: Int32Array[] = []
  readonly #times: Float64Array[] = []
  #count = 0

  /** The last one's number. */
  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#words.length << (CHUNK_BITS + WORD_BITS + 2)
  }

  /** The chunk of a row, as words. */
  words(row: number): Int32Array {
    return this.#words[row >>> CHUNK_BITS] as Int32Array
  }

  /** The same, as times. */
  times(row: number): Float64Array {
    return this.#times[row >>> CHUNK_BITS] as Float64Array
  }

  /** Gives a row whose words are anything. */
  add(): number {
    const row = ++this.#count
    if (row >>> CHUNK_BITS >= this.#words.length) {
      const chunk = new Int32Array(1 << (CHUNK_BITS + WORD_BITS))
      this.#words.push(chunk)
      this.#times.push(new Float64Array(chunk.buffer))
    }
    return row
  }

  /** Puts the last row in place of another; the last one is no more. */
  moveLastTo(row: number): void {
    const last = this.#count--
    if (row !== last) {
      const from = wordsAt(last)
      this.words(row).set(this.words(last).subarray(from, from + (1 << WORD_BITS)), wordsAt(row))
    }
    // One empty chunk is kept, so that a row that comes and goes costs no chunk each time.
    if (this.#words.length <= (this.#count >>> CHUNK_BITS) + 2) return
    this.#words.pop()
    this.#times.pop()
  }
}
