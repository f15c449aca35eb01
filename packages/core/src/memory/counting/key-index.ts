import { HIGH, LOW, NEXT, NONE, type Rows, wordsAt } from './rows.ts'

const LEAST_PLACES = 1024
const CHUNK_BITS = 10
const CHUNK_MASK = (1 << CHUNK_BITS) - 1

/**
 * Finds the row of a hash, by linear hashing (Litwin): the index grows and shrinks by one place at a time, so no key
 * that comes has to wait while all the others are put elsewhere.
 */
export class KeyIndex {
  readonly #rows: Rows
  /** The first row at each place; the others follow by `NEXT`. */
  readonly #chunks = [new Int32Array(1 << CHUNK_BITS)]
  #places = LEAST_PLACES
  /** The largest power of two that is no more than the places. */
  #span = LEAST_PLACES
  #count = 0

  constructor(rows: Rows) {
    this.#rows = rows
  }

  get bytes(): number {
    return this.#chunks.length << (CHUNK_BITS + 2)
  }

  /** Gives the row, or `NONE`. */
  find(low: number, high: number): number {
    let row = this.#firstAt(this.#placeOf(low))
    while (row !== NONE) {
      const words = this.#rows.words(row)
      const at = wordsAt(row)
      if (words[at + LOW] === low && words[at + HIGH] === high) return row
      row = words[at + NEXT] as number
    }
    return NONE
  }

  add(row: number): void {
    this.#put(row)
    if (++this.#count > this.#places) this.#split()
  }

  remove(row: number): void {
    this.replace(row, this.#nextOf(row))
    this.#count--
    for (let i = 0; i < 2 && this.#places > LEAST_PLACES && this.#places > 2 * this.#count; i++) this.#merge()
  }

  /** Puts the row `by` where the row `row` is pointed at. */
  replace(row: number, by: number): void {
    const place = this.#placeOf(this.#lowOf(row))
    let before = this.#firstAt(place)
    if (before === row) return this.#setFirst(place, by)
    for (let next = this.#nextOf(before); next !== row; next = this.#nextOf(before)) before = next
    this.#setNext(before, by)
  }

  #placeOf(low: number): number {
    const place = low & (2 * this.#span - 1)
    return place < this.#places ? place : place & (this.#span - 1)
  }

  #put(row: number): void {
    const place = this.#placeOf(this.#lowOf(row))
    this.#setNext(row, this.#firstAt(place))
    this.#setFirst(place, row)
  }

  #putAll(first: number): void {
    for (let row = first; row !== NONE;) {
      const next = this.#nextOf(row)
      this.#put(row)
      row = next
    }
  }

  /** The place that was split longest ago gives some of its rows to a new one. */
  #split(): void {
    const from = this.#places - this.#span
    if (this.#places >>> CHUNK_BITS >= this.#chunks.length) this.#chunks.push(new Int32Array(1 << CHUNK_BITS))
    this.#places++
    if (this.#places === 2 * this.#span) this.#span = this.#places
    this.#empty(from)
  }

  /** The reverse: the last place gives its rows back. */
  #merge(): void {
    this.#places--
    if (this.#places < this.#span) this.#span >>>= 1
    this.#empty(this.#places)
    if ((this.#places & CHUNK_MASK) === 0) this.#chunks.pop()
  }

  #empty(place: number): void {
    const first = this.#firstAt(place)
    this.#setFirst(place, NONE)
    this.#putAll(first)
  }

  #firstAt(place: number): number {
    return (this.#chunks[place >>> CHUNK_BITS] as Int32Array)[place & CHUNK_MASK] as number
  }

  #setFirst(place: number, row: number): void {
    ;(this.#chunks[place >>> CHUNK_BITS] as Int32Array)[place & CHUNK_MASK] = row
  }

  #lowOf(row: number): number {
    return this.#rows.words(row)[wordsAt(row) + LOW] as number
  }

  #nextOf(row: number): number {
    return this.#rows.words(row)[wordsAt(row) + NEXT] as number
  }

  #setNext(row: number, next: number): void {
    this.#rows.words(row)[wordsAt(row) + NEXT] = next
  }
}
