interface Chunk {
  readonly times: Float64Array
  /** Of each ring: whose it is, the position of its oldest time, how many it holds. */
  readonly heads: Int32Array
}

const OWNER = 0
const OLDEST = 1
const COUNT = 2
const HEAD_WORDS = 3
const CHUNK_PLACES = 1024

/**
 * Rings of times, all of `2 ** order` places, that lie side by side without holes: 0, 1, 2 … When one is closed the
 * last takes its place, which `onMove` is told.
 */
export class RingPool {
  readonly #capacity: number
  readonly #ringsPerChunk: number
  readonly #chunkBits: number
  readonly #onMove: (owner: number, ring: number) => void
  readonly #chunks: Chunk[] = []
  #rings = 0

  constructor(order: number, onMove: (owner: number, ring: number) => void) {
    this.#capacity = 2 ** order
    this.#ringsPerChunk = Math.max(1, CHUNK_PLACES / this.#capacity)
    this.#chunkBits = Math.log2(this.#ringsPerChunk)
    this.#onMove = onMove
  }

  get bytes(): number {
    return this.#chunks.length * this.#ringsPerChunk * (8 * this.#capacity + 4 * HEAD_WORDS)
  }

  /** Gives an empty ring. */
  open(owner: number): number {
    const ring = this.#rings++
    if (ring >>> this.#chunkBits >= this.#chunks.length)
      this.#chunks.push({
        times: new Float64Array(this.#ringsPerChunk * this.#capacity),
        heads: new Int32Array(this.#ringsPerChunk * HEAD_WORDS),
      })
    this.#chunkOf(ring).heads.set([owner, 0, 0], this.#headAt(ring))
    return ring
  }

  close(ring: number): void {
    const last = --this.#rings
    if (ring !== last) this.#move(last, ring)
    // One empty chunk is kept, so that a ring that comes and goes costs no chunk each time; not of those of one large ring.
    const spare = this.#ringsPerChunk > 1 ? 1 : 0
    if (this.#chunks.length > Math.ceil(last / this.#ringsPerChunk) + spare) this.#chunks.pop()
  }

  setOwner(ring: number, owner: number): void {
    this.#chunkOf(ring).heads[this.#headAt(ring) + OWNER] = owner
  }

  count(ring: number): number {
    return this.#chunkOf(ring).heads[this.#headAt(ring) + COUNT] as number
  }

  /** The time at a place, counted from the oldest. */
  timeMs(ring: number, place: number): number {
    const chunk = this.#chunkOf(ring)
    return chunk.times[this.#positionOf(chunk, ring, place)] as number
  }

  /** Adds the newest time. There must be room. */
  push(ring: number, timeMs: number): void {
    const chunk = this.#chunkOf(ring)
    const count = this.#headAt(ring) + COUNT
    const held = chunk.heads[count] as number
    chunk.times[this.#positionOf(chunk, ring, held)] = timeMs
    chunk.heads[count] = held + 1
  }

  dropOldest(ring: number, dropped: number): void {
    const { heads } = this.#chunkOf(ring)
    const head = this.#headAt(ring)
    heads[head + OLDEST] = ((heads[head + OLDEST] as number) + dropped) & (this.#capacity - 1)
    heads[head + COUNT] = (heads[head + COUNT] as number) - dropped
  }

  remove(ring: number, place: number): void {
    const chunk = this.#chunkOf(ring)
    const count = this.#headAt(ring) + COUNT
    const left = (chunk.heads[count] as number) - 1
    for (let i = place; i < left; i++)
      chunk.times[this.#positionOf(chunk, ring, i)] = chunk.times[this.#positionOf(chunk, ring, i + 1)] as number
    chunk.heads[count] = left
  }

  #move(from: number, to: number): void {
    const source = this.#chunkOf(from)
    const target = this.#chunkOf(to)
    const times = this.#timesAt(from)
    const head = this.#headAt(from)
    target.times.set(source.times.subarray(times, times + this.#capacity), this.#timesAt(to))
    target.heads.set(source.heads.subarray(head, head + HEAD_WORDS), this.#headAt(to))
    this.#onMove(target.heads[this.#headAt(to) + OWNER] as number, to)
  }

  #chunkOf(ring: number): Chunk {
    return this.#chunks[ring >>> this.#chunkBits] as Chunk
  }

  #headAt(ring: number): number {
    return (ring & (this.#ringsPerChunk - 1)) * HEAD_WORDS
  }

  #timesAt(ring: number): number {
    return (ring & (this.#ringsPerChunk - 1)) * this.#capacity
  }

  #positionOf({ heads }: Chunk, ring: number, place: number): number {
    const position = (heads[this.#headAt(ring) + OLDEST] as number) + place
    return this.#timesAt(ring) + (position & (this.#capacity - 1))
  }
}
