import type { Clock } from '@toolgate/core/stores'

/** A lease runs so long from the sending of the query that renewed it. */
export const LEASE_MS = 2000

/** Where the shared state was when the primary answered. */
export interface Position {
  /** Grows with each change of the shared state. */
  readonly revision: number
  /** Names the database and its timeline: another one after a fail-over to a standby, or a restored backup. */
  readonly timeline: string
  /** A person has accepted this timeline, or it is the first one. */
  readonly isAccepted: boolean
}

/** Why an answer of the primary confirms nothing. */
type Doubt =
  | { readonly kind: 'older'; readonly revision: number; readonly seen: number }
  | { readonly kind: 'timeline'; readonly timeline: string }

/** What a replica knows about its lease. */
export interface LeaseState {
  readonly holds: boolean
  /** How long ago the query of the lease was sent. */
  readonly ageMs: number | undefined
  readonly revision: { readonly applied: number; readonly seen: number }
  /** Renewals that failed since the start. */
  readonly failed: number
  /** Why the latest renewal did not succeed. */
  readonly problem: LeaseProblem | undefined
}

/** `silent`: the database does not answer. `behind`: the state cannot be applied. `taken`: another process has the id. */
export type LeaseProblem =
  | Doubt
  | { readonly kind: 'silent' | 'behind'; readonly error: string }
  | { readonly kind: 'taken' }

/** A query that was sent. */
export interface Sent {
  readonly monotonicMs: number
  readonly wallMs: number
  readonly count: number
}

/** How long ago the query of the lease was sent; `undefined` before the first one. */
type LeaseAge = number | undefined

/**
 * The lease of one replica: it holds for 2 s from the sending of the latest query whose answer is applied, on the
 * stricter of both clocks.
 *
 * A suspended machine's monotonic clock stands still, and a wall clock can be set back. A lease from the future of the
 * wall clock does not hold either.
 */
export class Lease {
  readonly #clock: Clock
  #count = 0
  #held: Sent | undefined
  #seen: number | undefined
  #doubt: Doubt | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes both clocks. Called in the turn in which a query is sent. */
  send(): Sent {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs(), count: ++this.#count }
  }

  /** Returns why an answer confirms nothing, and keeps it for `doubt`. `undefined`: its revision can be applied. */
  look({ revision, timeline, isAccepted }: Position): Doubt | undefined {
    const seen = this.#seen ?? revision
    if (!isAccepted) this.#doubt = { kind: 'timeline', timeline }
    else this.#doubt = revision < seen ? { kind: 'older', revision, seen } : undefined
    if (!this.#doubt) this.#seen = revision
    return this.#doubt
  }

  /** Renews the lease by a query whose answer is applied. One that was sent earlier than the present one changes nothing. */
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

  /** The newest revision that an answer had. */
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
