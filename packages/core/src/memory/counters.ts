import type { Clock, CounterStore, LimitAnswer, LimitUse } from '../ports.ts'
import { type Bucket, Buckets, NONE } from './counting/buckets.ts'
import { createKeyHash, type KeyHash } from './counting/key-hash.ts'

/** Counters that answer at once. */
export interface SyncCounterStore extends CounterStore {
  peek(uses: readonly LimitUse[]): LimitAnswer
  take(uses: readonly LimitUse[]): LimitAnswer
  giveBack(uses: readonly LimitUse[], taken?: LimitAnswer): void
}

export interface MemoryCounters extends SyncCounterStore {
  /** How many keys are held now. */
  readonly size: number
  /** How much memory their uses take. */
  readonly bytes: number
}

export interface MemoryCountersOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** More keys than this at one time and a use of a new key is refused. Default 1,000,000, which take about 40 MB. */
  readonly maxKeys?: number
}

/** How many keys that have passed are forgotten at a time. */
const SWEPT_AT_ONCE = 64
const WINDOWS_SWEPT_AT_ONCE = 2

/**
 * Gives counters that live in this process.
 *
 * A use costs the same however full its window is and however many keys there are, and what has passed is forgotten
 * as others come. When there is no room for a new key its use is refused, never let through uncounted.
 *
 * Keys are not kept, but 64-bit hashes of them, with random numbers of this process: of a million keys at one time, two
 * have the same with a probability of 1 in 37 million, and nobody can choose which. Those two would share one bucket,
 * so that they are limited earlier, never later.
 *
 * @throws {RangeError} from `take` and `peek` when the clock gives no time
 */
export function memoryCounters(options: MemoryCountersOptions): MemoryCounters {
  return createCounters(options, createKeyHash())
}

/** As {@link memoryCounters}, with a hash of one's own. */
export function createCounters(
  { clock, maxKeys = 1_000_000 }: MemoryCountersOptions,
  hashOf: (key: string) => Readonly<KeyHash>,
): MemoryCounters {
  let buckets = new Buckets()
  /** What is asked for now: used again and again, as this runs in each call. */
  const asked: Asked[] = []
  let nowMs = Number.NEGATIVE_INFINITY
  /** By then everything has passed. */
  let idleAtMs = Number.NEGATIVE_INFINITY
  /** Until then no key can be forgotten, so that being full costs nothing. */
  let fullUntilMs = Number.NEGATIVE_INFINITY

  /** Limits hold only while time does not go back. */
  function readClock(): void {
    const readMs = clock.monotonicMs()
    if (!Number.isFinite(readMs)) throw new RangeError(`the clock gives ${readMs}, which is no time`)
    if (readMs > nowMs) nowMs = readMs
  }

  function readKeys(uses: readonly LimitUse[]): void {
    for (let i = 0; i < uses.length; i++) {
      const { low, high } = hashOf((uses[i] as LimitUse).key)
      const one = (asked[i] ??= { low: 0, high: 0, id: NONE, count: 0, oldestMs: 0.5, windowMs: 0.5 })
      one.low = low
      one.high = high
    }
  }

  function forgetSome(): void {
    if (nowMs >= idleAtMs && buckets.size > SWEPT_AT_ONCE) buckets = new Buckets()
    else buckets.sweep(nowMs, SWEPT_AT_ONCE, WINDOWS_SWEPT_AT_ONCE)
  }

  function hasRoomFor(count: number): boolean {
    if (buckets.size + count <= maxKeys) return true
    if (nowMs < fullUntilMs) return false
    buckets.sweep(nowMs, count + SWEPT_AT_ONCE)
    if (buckets.size + count <= maxKeys) return true
    fullUntilMs = buckets.firstPassesAtMs()
    return false
  }

  /** Reads the bucket of a key, without the uses that have left its longest window. */
  function readLive(one: Asked): void {
    buckets.read(one, one)
    if (one.count === 0 || one.oldestMs + one.windowMs > nowMs) return
    const passed = countPassed(one.id, one.count, one.windowMs)
    buckets.dropOldest(one.id, passed)
    buckets.read(one, one)
  }

  /** Counts the uses that have left a window, of which there are mostly few. One at `t` leaves it exactly at `t + windowMs`. */
  function countPassed(id: number, count: number, windowMs: number): number {
    let step = 1
    while (step <= count && buckets.timeMs(id, step - 1) + windowMs <= nowMs) step *= 2
    let low = step >> 1
    let high = Math.min(step - 1, count)
    while (low < high) {
      const middle = (low + high) >>> 1
      if (buckets.timeMs(id, middle) + windowMs <= nowMs) low = middle + 1
      else high = middle
    }
    return low
  }

  function check(uses: readonly LimitUse[]): LimitAnswer {
    readClock()
    forgetSome()
    readKeys(uses)
    let remaining = Number.POSITIVE_INFINITY
    let newKeys = 0
    for (let i = 0; i < uses.length; i++) {
      const use = uses[i] as LimitUse
      const one = asked[i] as Asked
      readLive(one)
      const earlier = i === 0 ? 0 : sameBefore(asked, i)
      if (one.count === 0 && earlier === 0 && !hasRoomFor(++newKeys))
        return refusal(i, Math.min(fullUntilMs - nowMs, use.windowMs))
      const left = use.max - heldIn(one, use.windowMs) - earlier - 1
      if (left < 0) return refusal(i, resetMsOf(one, use, earlier))
      if (left < remaining) remaining = left
    }
    return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: nowMs }
  }

  function refusal(refused: number, resetMs: number): LimitAnswer {
    return { allowed: false, refused, remaining: 0, resetMs, atMs: nowMs }
  }

  function heldIn({ id, count, windowMs: longestMs }: Asked, windowMs: number): number {
    return count === 0 || windowMs >= longestMs ? count : count - countPassed(id, count, windowMs)
  }

  /** Milliseconds until one more use is within the limit, beside `earlier` uses of the same take. */
  function resetMsOf({ id, count }: Asked, { max, windowMs }: LimitUse, earlier: number): number {
    // All but `max - earlier - 1` of the uses have to leave, so this is the last one that must.
    const place = count - (max - earlier)
    return place < 0 || place >= count ? windowMs : buckets.timeMs(id, place) + windowMs - nowMs
  }

  function add(one: Asked, windowMs: number): void {
    const id = buckets.find(one)
    let longestMs = windowMs
    if (id === NONE) {
      buckets.open(one, nowMs, windowMs)
      // It may be the first to pass of all that fill the store.
      if (nowMs + windowMs < fullUntilMs) fullUntilMs = nowMs + windowMs
    } else longestMs = buckets.push(id, nowMs, windowMs)
    if (nowMs + longestMs > idleAtMs) idleAtMs = nowMs + longestMs
  }

  /** Gives the place of the latest use at a time, by halving, or -1. */
  function findUse(id: number, atMs: number): number {
    let low = 0
    let high = buckets.count(id)
    while (low < high) {
      const middle = (low + high) >>> 1
      if (buckets.timeMs(id, middle) <= atMs) low = middle + 1
      else high = middle
    }
    return low > 0 && buckets.timeMs(id, low - 1) === atMs ? low - 1 : -1
  }

  return {
    get size() {
      return buckets.size
    },
    get bytes() {
      return buckets.bytes
    },
    peek: check,
    take(uses) {
      const answer = check(uses)
      if (answer.allowed) for (let i = 0; i < uses.length; i++) add(asked[i] as Asked, (uses[i] as LimitUse).windowMs)
      return answer
    },
    giveBack(uses, taken) {
      if (taken?.allowed === false) return
      for (const { key } of uses) {
        const id = buckets.find(hashOf(key))
        if (id === NONE) continue
        const place = taken?.atMs === undefined ? buckets.count(id) - 1 : findUse(id, taken.atMs)
        if (place < 0) continue
        buckets.removeUse(id, place)
        fullUntilMs = Number.NEGATIVE_INFINITY
      }
    },
  }
}

interface Asked extends KeyHash, Bucket {}

/** Compares what buckets are found by: two keys that share one are one key. */
function sameBefore(asked: readonly Asked[], end: number): number {
  const { low, high } = asked[end] as Asked
  let count = 0
  for (let i = 0; i < end; i++) if (asked[i]?.low === low && asked[i]?.high === high) count++
  return count
}
