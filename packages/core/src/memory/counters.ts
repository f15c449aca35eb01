import type { Clock, CounterStore, LimitAnswer, LimitUse } from '../ports/ports.ts'
import { checkShape, shapeOf } from '@toolgate/values'
import { Uses } from './uses.ts'

/** Counters that answer synchronously. */
export interface SyncCounterStore extends CounterStore {
  peek(uses: readonly LimitUse[]): LimitAnswer
  take(uses: readonly LimitUse[]): LimitAnswer
  giveBack(uses: readonly LimitUse[], taken?: LimitAnswer): void
  settle(uses: readonly LimitUse[], taken: LimitAnswer, costs: readonly number[]): void
}

export interface MemoryCounters extends SyncCounterStore {
  /** The current number of keys. */
  readonly size: number
}

interface MemoryCountersOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The maximum number of keys. Beyond it, new keys are refused. Default 200,000, about 64 MB. */
  readonly maxKeys?: number
}

const OPTIONS = shapeOf<MemoryCountersOptions>({ clock: true, maxKeys: true })

/**
 * Returns counters that live in this process.
 *
 * The time that a use takes does not depend on the number of keys. Later uses remove expired keys. If there is no room
 * for a new key, its use is refused, so every allowed use is counted.
 *
 * @throws {RangeError} from `take` and `peek` when the clock does not return a finite number
 */
export function memoryCounters(options: MemoryCountersOptions): MemoryCounters {
  checkShape('memoryCounters', options, OPTIONS)
  const { clock, maxKeys = 200_000 } = options
  const counters = new Counters(clock, maxKeys)
  // Own properties, so that a host may spread the store and replace one of them.
  return {
    get size() {
      return counters.size
    },
    peek: (uses) => counters.peek(uses),
    take: (uses) => counters.take(uses),
    giveBack: (uses, taken) => counters.giveBack(uses, taken),
    settle: (uses, taken, costs) => counters.settle(uses, taken, costs),
  }
}

/** The number of keys that one `peek` or `take` checks for expiry. */
const SWEPT_AT_ONCE = 64
/** The most uses of a key at one time. With costs, a limit may allow more. */
const MAX_USES = 1_000_000
/** The least milliseconds between two rounds over all keys. */
const ROUND_MS = 100
/** A full store waits one millisecond per this many keys before it checks them all again. */
const KEYS_PER_FULL_MS = 10_000

class Counters {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #maxKeys: number
  #keys = new Map<string, Uses>()
  #nowMs = Number.NEGATIVE_INFINITY
  /** The time when all keys have passed. */
  #idleAtMs = Number.NEGATIVE_INFINITY
  /** No key is checked before this time, so that a full store stays cheap. */
  #fullUntilMs = Number.NEGATIVE_INFINITY
  /** The takes that were settled. */
  readonly #settled = new WeakSet<LimitAnswer>()
  /** The keys that this round has not checked yet. */
  #unseen: Iterator<[string, Uses]> | undefined
  #nextRoundMs = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonicMs'>, maxKeys: number) {
    this.#clock = clock
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#keys.size
  }

  peek(uses: readonly LimitUse[]): LimitAnswer {
    this.#readClock()
    this.#forgetSome()
    let remaining = Number.POSITIVE_INFINITY
    let newKeys = 0
    for (let i = 0; i < uses.length; i++) {
      const use = uses[i] as LimitUse
      const { max, windowMs, cost = 1 } = use
      const held = this.#live(use.key)
      const earlier = i === 0 ? 0 : costBefore(uses, i)
      if (!held && earlier === 0 && !this.#hasRoomFor(++newKeys))
        return this.#refusal(i, 0, Math.min(this.#fullUntilMs - this.#nowMs, windowMs))
      const room = max - (held ? held.usedIn(windowMs, this.#nowMs) : 0) - earlier
      if (cost > room || (held && held.count >= MAX_USES))
        return this.#refusal(i, room, this.#resetMsOf(held, use, Math.max(cost - room, 1)))
      if (room - cost < remaining) remaining = room - cost
    }
    return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: this.#nowMs }
  }

  take(uses: readonly LimitUse[]): LimitAnswer {
    const answer = this.peek(uses)
    if (answer.allowed) for (const use of uses) this.#add(use)
    return answer
  }

  giveBack(uses: readonly LimitUse[], taken?: LimitAnswer): void {
    if (taken?.allowed === false) return
    for (const { key, cost } of uses) {
      const held = this.#keys.get(key)
      if (cost === 0 || !held?.remove(taken?.atMs, taken && cost)) continue
      if (held.count === 0) this.#keys.delete(key)
      this.#fullUntilMs = Number.NEGATIVE_INFINITY
    }
  }

  settle(uses: readonly LimitUse[], taken: LimitAnswer, costs: readonly number[]): void {
    if (!taken.allowed || this.#settled.has(taken)) return
    this.#settled.add(taken)
    for (const [i, { key, cost = 1 }] of uses.entries())
      this.#keys.get(key)?.changeCost(taken.atMs, cost, costs[i] ?? cost)
    this.#fullUntilMs = Number.NEGATIVE_INFINITY
  }

  /** Ignores a clock that goes back: limits hold only while time moves forward. */
  #readClock(): void {
    const readMs = this.#clock.monotonicMs()
    if (!Number.isFinite(readMs)) throw new RangeError(`the clock returned ${readMs}, which is not a time`)
    if (readMs > this.#nowMs) this.#nowMs = readMs
  }

  /** Returns the uses of a key that have not all passed. */
  #live(key: string): Uses | undefined {
    const held = this.#keys.get(key)
    held?.dropPassed(this.#nowMs)
    if (held?.count !== 0) return held
    this.#keys.delete(key)
    return undefined
  }

  #add({ key, windowMs, cost }: LimitUse): void {
    if (cost === 0) return
    let held = this.#keys.get(key)
    if (held) held.push(this.#nowMs, windowMs, cost)
    else this.#keys.set(key, (held = new Uses(this.#nowMs, windowMs, cost)))
    const { passesAtMs } = held
    if (passesAtMs > this.#idleAtMs) this.#idleAtMs = passesAtMs
    // This key may be the first of a full store to pass.
    if (passesAtMs < this.#fullUntilMs) this.#fullUntilMs = passesAtMs
  }

  #refusal(refused: number, room: number, resetMs: number): LimitAnswer {
    return { allowed: false, refused, remaining: Math.max(room, 0), resetMs, atMs: this.#nowMs }
  }

  /** Milliseconds until an amount has left the window of a limit; at most until everything has. */
  #resetMsOf(held: Uses | undefined, { windowMs }: LimitUse, amount: number): number {
    const timeMs = held?.timeOfLeaving(amount, windowMs, this.#nowMs)
    return timeMs === undefined ? windowMs : timeMs + windowMs - this.#nowMs
  }

  #hasRoomFor(count: number): boolean {
    if (this.#keys.size + count <= this.#maxKeys) return true
    if (this.#nowMs < this.#fullUntilMs) return false
    const firstPassesAtMs = this.#forgetAllPassed()
    if (this.#keys.size + count <= this.#maxKeys) return true
    const restMs = Math.floor(this.#keys.size / KEYS_PER_FULL_MS)
    this.#fullUntilMs = Math.max(firstPassesAtMs, this.#nowMs + restMs)
    return false
  }

  /** Returns the time when the first remaining key passes. */
  #forgetAllPassed(): number {
    let firstMs = Number.POSITIVE_INFINITY
    for (const [key, held] of this.#keys) {
      if (held.passesAtMs <= this.#nowMs) this.#keys.delete(key)
      else if (held.passesAtMs < firstMs) firstMs = held.passesAtMs
    }
    return firstMs
  }

  /** Checks a few keys, so that repeated uses go round all of them. */
  #forgetSome(): void {
    if (this.#nowMs >= this.#idleAtMs && this.#keys.size > 0) {
      this.#keys = new Map()
      this.#unseen = undefined
    }
    if (!this.#unseen && (this.#nowMs < this.#nextRoundMs || this.#keys.size === 0)) return
    if (!this.#unseen) {
      this.#unseen = this.#keys[Symbol.iterator]()
      this.#nextRoundMs = this.#nowMs + ROUND_MS
    }
    for (let i = 0; i < SWEPT_AT_ONCE; i++) {
      const next = this.#unseen.next()
      if (next.done) {
        this.#unseen = undefined
        return
      }
      const [key, held] = next.value
      if (held.passesAtMs <= this.#nowMs) this.#keys.delete(key)
    }
  }
}

/** Adds up the costs of the uses of the same key before one of them. */
function costBefore(uses: readonly LimitUse[], end: number): number {
  const { key } = uses[end] as LimitUse
  let sum = 0
  for (let i = 0; i < end; i++) if (uses[i]?.key === key) sum += uses[i]?.cost ?? 1
  return sum
}
