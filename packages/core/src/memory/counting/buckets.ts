import type { KeyHash } from './key-hash.ts'
import { KeyIndex } from './key-index.ts'
import { PassingOrder, type PassingQueue } from './passing-order.ts'
import { RingPool } from './ring-pool.ts'
import { HIGH, LOW, NONE, RING, Rows, SHAPE, timeAt, wordsAt } from './rows.ts'

export { NONE } from './rows.ts'

/** What is known of a key's uses. */
export interface Bucket {
  /** `NONE`, or its number, which is good until any bucket is removed. */
  id: number
  /** How many uses it holds. */
  count: number
  oldestMs: number
  /** The longest window that was asked for. */
  windowMs: number
}

/** The lowest bits of a row's shape say how many places there are for times: two to the power of them. The others name its queue. */
const ORDER_BITS = 5
const ORDER_MASK = (1 << ORDER_BITS) - 1

/**
 * The uses of each key: their times, the oldest first, and the longest window that was asked for.
 *
 * They are in typed arrays, 36 bytes for a key with one use, and 9 to 38 for each use of others. Nothing is kept but what
 * is counted, in chunks that are given back as it passes, and none of it is the garbage collector's to follow.
 */
export class Buckets {
  readonly #rows = new Rows()
  readonly #index = new KeyIndex(this.#rows)
  readonly #order = new PassingOrder(this.#rows)
  readonly #pools: RingPool[] = []
  readonly #setRing = (id: number, ring: number): void => {
    this.#rows.words(id)[wordsAt(id) + RING] = ring
  }
  #turn = 0

  get size(): number {
    return this.#rows.count
  }

  /** What all of it takes. */
  get bytes(): number {
    return this.#pools.reduce((sum, pool) => sum + pool.bytes, this.#rows.bytes + this.#index.bytes)
  }

  /** Gives the id of a key's bucket, or `NONE`. */
  find({ low, high }: KeyHash): number {
    return this.#index.find(low, high)
  }

  /** Reads all that is known of a key's bucket; of one that is not there, that it holds nothing. */
  read({ low, high }: KeyHash, into: Bucket): void {
    const id = this.#index.find(low, high)
    into.id = id
    into.count = 0
    if (id === NONE) return
    const shape = this.#shapeOf(id)
    const places = shape & ORDER_MASK
    into.windowMs = this.#order.byId(shape >>> ORDER_BITS).windowMs
    into.count = 1
    into.oldestMs = this.#rows.times(id)[timeAt(id)] as number
    if (places === 0) return
    const pool = this.#poolOf(places)
    const ring = this.#ringOf(id)
    into.count = pool.count(ring)
    into.oldestMs = pool.timeMs(ring, 0)
  }

  count(id: number): number {
    const places = this.#orderOf(id)
    return places === 0 ? 1 : this.#poolOf(places).count(this.#ringOf(id))
  }

  timeMs(id: number, place: number): number {
    const places = this.#orderOf(id)
    return places === 0
      ? (this.#rows.times(id)[timeAt(id)] as number)
      : this.#poolOf(places).timeMs(this.#ringOf(id), place)
  }

  /** Makes a bucket with one use. */
  open({ low, high }: KeyHash, atMs: number, windowMs: number): void {
    const id = this.#rows.add()
    const queue = this.#order.ofWindow(windowMs)
    const words = this.#rows.words(id)
    words[wordsAt(id) + LOW] = low
    words[wordsAt(id) + HIGH] = high
    this.#rows.times(id)[timeAt(id)] = atMs
    this.#setShape(id, queue, 0)
    this.#index.add(id)
    this.#order.append(queue, id)
  }

  /** Adds the newest use. Gives the longest window. */
  push(id: number, atMs: number, windowMs: number): number {
    let places = this.#orderOf(id)
    if (this.count(id) === 2 ** places) this.#resize(id, ++places)
    this.#poolOf(places).push(this.#ringOf(id), atMs)
    return this.#enqueue(id, windowMs)
  }

  /** Removes the oldest uses; all of them, and the bucket is gone. */
  dropOldest(id: number, dropped: number): void {
    if (dropped === this.count(id)) return this.#remove(id)
    this.#poolOf(this.#orderOf(id)).dropOldest(this.#ringOf(id), dropped)
    this.#shrink(id)
  }

  removeUse(id: number, place: number): void {
    if (this.count(id) === 1) return this.#remove(id)
    this.#poolOf(this.#orderOf(id)).remove(this.#ringOf(id), place)
    this.#shrink(id)
    // Without its newest use a bucket passes earlier. It keeps its place, so another in front may hold it up.
    this.#queueOf(id).quietUntilMs = Number.NEGATIVE_INFINITY
  }

  /** Removes buckets whose uses have all passed, at most so many, of so many lengths of window in turn. Default: of all. */
  sweep(nowMs: number, most: number, windows: number = this.#order.queues.length): void {
    const { queues } = this.#order
    let left = most
    for (let i = 0; i < windows && left > 0 && queues.length > 0; i++) {
      if (++this.#turn >= queues.length) this.#turn = 0
      left -= this.#sweepQueue(queues[this.#turn] as PassingQueue, nowMs, left)
    }
  }

  /** When the first bucket will have passed. */
  firstPassesAtMs(): number {
    let firstMs = Number.POSITIVE_INFINITY
    for (const { oldest } of this.#order.queues) firstMs = Math.min(firstMs, this.#passesAtMs(oldest))
    return firstMs
  }

  #shapeOf(id: number): number {
    return this.#rows.words(id)[wordsAt(id) + SHAPE] as number
  }

  #setShape(id: number, queue: PassingQueue, places: number): void {
    this.#rows.words(id)[wordsAt(id) + SHAPE] = (queue.id << ORDER_BITS) | places
  }

  #orderOf(id: number): number {
    return this.#shapeOf(id) & ORDER_MASK
  }

  #queueOf(id: number): PassingQueue {
    return this.#order.byId(this.#shapeOf(id) >>> ORDER_BITS)
  }

  #ringOf(id: number): number {
    return this.#rows.words(id)[wordsAt(id) + RING] as number
  }

  #poolOf(places: number): RingPool {
    return (this.#pools[places] ??= new RingPool(places, this.#setRing))
  }

  #passesAtMs(id: number): number {
    return this.timeMs(id, this.count(id) - 1) + this.#queueOf(id).windowMs
  }

  /** Gives a bucket other places for its times; a single one is in the row itself. */
  #resize(id: number, places: number): void {
    const before = this.#orderOf(id)
    const held = this.count(id)
    const ring = this.#ringOf(id)
    const oldestMs = this.timeMs(id, 0)
    if (places === 0) this.#rows.times(id)[timeAt(id)] = oldestMs
    else {
      const pool = this.#poolOf(places)
      const next = pool.open(id)
      for (let i = 0; i < held; i++) pool.push(next, this.timeMs(id, i))
      this.#setRing(id, next)
    }
    this.#setShape(id, this.#queueOf(id), places)
    if (before > 0) this.#poolOf(before).close(ring)
  }

  /** A quarter of the places in use is few enough for fewer, and far from needing more again at once. */
  #shrink(id: number): void {
    const held = this.count(id)
    const places = this.#orderOf(id)
    if (places > 1 && held * 4 <= 2 ** places) this.#resize(id, held === 1 ? 0 : 32 - Math.clz32(held * 2 - 1))
  }

  /** Makes a bucket the last to pass, of its own length of window or a longer one. */
  #enqueue(id: number, windowMs: number): number {
    const shape = this.#shapeOf(id)
    const from = this.#order.byId(shape >>> ORDER_BITS)
    const to = windowMs > from.windowMs ? this.#order.ofWindow(windowMs) : from
    if (to.newest !== id) {
      this.#order.remove(from, id)
      this.#order.append(to, id)
      this.#setShape(id, to, shape & ORDER_MASK)
    }
    return to.windowMs
  }

  #remove(id: number): void {
    const places = this.#orderOf(id)
    if (places > 0) this.#poolOf(places).close(this.#ringOf(id))
    this.#index.remove(id)
    this.#order.remove(this.#queueOf(id), id)
    const last = this.#rows.count
    if (last !== id) {
      this.#index.replace(last, id)
      this.#order.move(this.#queueOf(last), last, id)
      if (this.#orderOf(last) > 0) this.#poolOf(this.#orderOf(last)).setOwner(this.#ringOf(last), id)
    }
    this.#rows.moveLastTo(id)
  }

  #sweepQueue(queue: PassingQueue, nowMs: number, most: number): number {
    if (nowMs < queue.quietUntilMs) return 0
    let swept = 0
    while (swept < most && queue.oldest !== NONE && this.#passesAtMs(queue.oldest) <= nowMs) {
      this.#remove(queue.oldest)
      swept++
    }
    if (queue.oldest !== NONE) queue.quietUntilMs = this.#passesAtMs(queue.oldest)
    return swept
  }
}
