import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { createEmitter } from '@toolgate/values'
import type { Clock, ReplicaLapse, ReplicaLease, StateStore } from '@toolgate/core/stores'
import { lapseOf } from './lapse-text.ts'
import type { LeaseState } from './lease.ts'
import { Renewals } from './renewals.ts'
import type { Replica, ReplicaRow, ReplicaWord } from '../postgres/replicas.ts'
import type { ReplicaStore } from './replica-store.ts'
import { SharedState } from './shared-state.ts'

export interface MembershipOptions {
  /** The replica's id. Default: the name of the host, and a random part. */
  readonly id?: string | undefined
  /** The origin at which other replicas reach it. */
  readonly url?: string | undefined
  readonly version: string
  readonly state: StateStore
  readonly replicas: ReplicaStore
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

/**
 * The version that a process without a gateway publishes. Gateways do not ask such a process about its configuration.
 */
export const LIBRARY = 'library'
/** How long running calls may continue after the lease has expired, in milliseconds. */
export const GRACE_MS = 10_000

/** The membership of one replica in a group that shares a database: its row, its lease and its state. */
export class Membership implements ReplicaLease {
  readonly self: Replica
  readonly state: SharedState
  readonly #options: MembershipOptions
  readonly #renewals: Renewals
  readonly #ends = createEmitter()
  readonly #checks = new Set<() => Promise<void>>()
  #grace: NodeJS.Timeout | undefined
  #speak: () => ReplicaWord = () => ({})
  #isStopping = false

  constructor(options: MembershipOptions) {
    const { id = randomId(), url, version, state, replicas, clock, onFault } = options
    this.#options = options
    this.self = { id, incarnation: randomUUID(), url, version }
    this.state = new SharedState({ state, store: replicas, clock, onWritten: () => this.hint() })
    const apply = () => this.state.apply()
    const onLate = async () => void (await Promise.all([...this.#checks].map((check) => check())))
    const word = () => ({ ...this.#speak(), ...(this.#isStopping && { isStopping: true as const }) })
    this.#renewals = new Renewals({ replica: this.self, store: replicas, clock, word, apply, onLate, onFault })
    this.#renewals.subscribe(() => this.#watch())
  }

  get lease(): LeaseState {
    return this.#renewals.state
  }

  /** Takes the row. Returns `false` if a live replica has the id. Otherwise the first renewal has been tried. */
  async join(): Promise<boolean> {
    if (!(await this.#options.replicas.join(this.self))) return false
    await this.#renewals.start()
    return true
  }

  /** Applies the whole state once more before the lease holds. Call it when every reader of the state is subscribed. */
  begin(): Promise<void> {
    return this.#renewals.begin()
  }

  /** Sets the function that returns this replica's status for each renewal. */
  say(speak: () => ReplicaWord): void {
    this.#speak = speak
  }

  /** Publishes that this replica is about to stop. It holds its lease meanwhile. */
  announceEnd(): void {
    this.#isStopping = true
    this.hint()
  }

  /** Renews now, because something has probably changed. */
  hint(): void {
    void this.renew()
  }

  /** Renews now. Resolves after the answer, or when none came in time. */
  renew(): Promise<void> {
    return this.#renewals.now()
  }

  lapse(): ReplicaLapse | undefined {
    return this.#renewals.holds ? undefined : lapseOf(this.lease)
  }

  onEnd(listener: () => void): () => void {
    return this.#ends.subscribe(listener)
  }

  /**
   * Sets a check for a time in which others could take over this replica's resources. It runs before the lease holds
   * again.
   */
  onLate(check: () => Promise<void>): void {
    this.#checks.add(check)
  }

  /** Calls the listener after each renewal, even a failed one. */
  onRenewal(listener: () => void): () => void {
    return this.#renewals.subscribe(listener)
  }

  /** Returns the revision of the shared state in the database. */
  revision(): Promise<number> {
    return this.#options.replicas.revision()
  }

  list(): Promise<readonly ReplicaRow[]> {
    return this.#options.replicas.list()
  }

  /** Continues with a database that lost changes, as it is now. */
  async accept(): Promise<void> {
    await this.#options.replicas.accept(this.lease.revision.seen)
    await this.#renewals.now()
  }

  /** Ends the lease, and frees the row. No callback runs after this. */
  async close(): Promise<void> {
    this.#renewals.close()
    clearTimeout(this.#grace)
    this.#ends.clear()
    this.state.close()
    await this.#options.replicas.leave(this.self).catch(this.#options.onFault)
  }

  #watch(): void {
    if (this.#renewals.holds) {
      clearTimeout(this.#grace)
      this.#grace = undefined
    } else this.#grace ??= setTimeout(() => this.#ends.emit(), GRACE_MS).unref()
  }
}

/** Returns the name of the host, and a random part. */
function randomId(): string {
  const host = hostname()
    .replaceAll(/[^\w.-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
  return `${host.slice(0, 50) || 'replica'}-${randomBytes(4).toString('hex')}`
}
