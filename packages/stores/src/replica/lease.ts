import type { Clock } from '@toolgate/core/stores'

/** The duration of a lease, in milliseconds, from when its renewing query was sent. */
export const LEASE_MS = 2000

/** The position of the shared state when the primary answered. */
export interface Position {
  /** A number that grows with each change of the shared state. */
  readonly revision: number
  /** The id of the database and its timeline. It changes after a fail-over to a standby, or a restored backup. */
  readonly timeline: string
  /** Whether a person has accepted this timeline, or it is the first one. */
  readonly isAccepted: boolean
}

/** The reasons why an answer of the primary confirms nothing. */
type Doubt =
  | { readonly kind: 'older'; readonly revision: number; readonly seen: number }
  | { readonly kind: 'timeline'; readonly timeline: string }

/** A replica's knowledge about its lease. */
export interface LeaseState {
  readonly holds: boolean
  /** The time since the lease's query was sent, in milliseconds. */
  readonly ageMs: number | undefined
  readonly revision: { readonly applied: number; readonly seen: number }
  /** The number of renewals that failed since the start. */
  readonly failed: number
  /** Why the latest renewal failed. */
  readonly problem: LeaseProblem | undefined
}

/** `silent`: the database does not answer. `behind`: the state cannot be applied. `taken`: another process has the id. */
export type LeaseProblem =
  | Doubt
  | { readonly kind: 'silent' | 'behind'; readonly error: string }
  | { readonly kind: 'taken' }

/** The times at which a query was sent. */
export interface Sent {
  readonly monotonicMs: number
  readonly wallMs: number
  readonly count: number
}

/** The time since the lease's query was sent, in milliseconds. `undefined` before the first query. */
type LeaseAge = number | undefined

/**
 * The lease of one replica: it holds for 2 s after the latest query whose answer is applied was sent. The stricter of
 * the monotonic and the wall clock counts.
 *
 * A suspended machine's monotonic clock stands still, and a wall clock can be set back. A lease whose wall-clock time
 * is in the future does not hold either.
 */
export class RenewedLease {
  readonly #clock: Clock
  #count = 0
  #held: Sent | undefined
  #seen: number | undefined
  #doubt: Doubt | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Reads both clocks. Call it in the turn in which a query is sent. */
  send(): Sent {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs(), count: ++this.#count }
  }

  /** Returns why an answer confirms nothing, and stores it for `doubt`. `undefined`: its revision can be applied. */
  look({ revision, timeline, isAccepted }: Position): Doubt | undefined {
    const seen = this.#seen ?? revision
    if (!isAccepted) this.#doubt = { kind: 'timeline', timeline }
    else this.#doubt = revision < seen ? { kind: 'older', revision, seen } : undefined
    if (!this.#doubt) this.#seen = revision
    return this.#doubt
  }

  /**
   * Renews the lease with a query whose answer is applied. A query that is older than the current one changes nothing.
   */
  confirm(sent: Sent): void {
    if (!this.#held || sent.count > this.#held.count) this.#held = sent
  }

  /** Ends the lease now. */
  drop(): void {
    this.#held = undefined
  }

  get holds(): boolean {
    return this.#held !== undefined && isFresh(this.#held, this.#clock)
  }

  get ageMs(): LeaseAge {
    return this.#held && ageOf(this.#held, this.#clock)
  }

  /** Why the latest answer confirmed nothing. */
  get doubt(): Doubt | undefined {
    return this.#doubt
  }

  /** The newest revision in any answer. */
  get seen(): number {
    return this.#seen ?? 0
  }
}

function isFresh(sent: Sent, clock: Clock): boolean {
  return ageOf(sent, clock) < LEASE_MS && clock.wallMs() >= sent.wallMs
}

function ageOf(sent: Sent, clock: Clock): number {
  return Math.max(clock.monotonicMs() - sent.monotonicMs, clock.wallMs() - sent.wallMs)
}
