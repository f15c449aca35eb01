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
  /** Default: the name of the host, and a random part. */
  readonly id?: string | undefined
  /** Where other replicas reach it: an origin. */
  readonly url?: string | undefined
  readonly version: string
  readonly state: StateStore
  readonly replicas: ReplicaStore
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

/** The version of a process that runs no gateway. It has no configuration, so the gateways ask it nothing. */
export const LIBRARY = 'library'
/** Running calls get so long after the lease has lapsed. */
export const GRACE_MS = 10_000

/** One replica among those that share a database: its row, its lease and its state. */
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

  /** Returns `false` if a live replica has the id. Otherwise the replica has its row, and has asked for its lease once. */
  async join(): Promise<boolean> {
    if (!(await this.#options.replicas.join(this.self))) return false
    await this.#renewals.start()
    return true
  }

  /** Applies the whole state once more before the lease holds. Called when everything that reads the state follows it. */
  begin(): Promise<void> {
    return this.#renewals.begin()
  }

  /** Has each renewal say what this replica runs. */
  say(speak: () => ReplicaWord): void {
    this.#speak = speak
  }

  /** Tells the others that this replica is about to end. It holds its lease meanwhile. */
  announceEnd(): void {
    this.#isStopping = true
    this.hint()
  }

  /** Asks again now, as something has probably changed. */
  hint(): void {
    void this.renew()
  }

  /** Asks again now. Resolves after the answer, or when there was none in time. */
  renew(): Promise<void> {
    return this.#renewals.now()
  }

  lapse(): ReplicaLapse | undefined {
    return this.#renewals.holds ? undefined : lapseOf(this.lease)
  }

  onEnd(listener: () => void): () => void {
    return this.#ends.subscribe(listener)
  }

  /** Has the check run before the lease holds again after a while in which others could take over what is here. */
  onLate(check: () => Promise<void>): void {
    this.#checks.add(check)
  }

  /** Calls the listener after each renewal, also one that failed. */
  onRenewal(listener: () => void): () => void {
    return this.#renewals.subscribe(listener)
  }

  /** Of the shared state, in the database. */
  revision(): Promise<number> {
    return this.#options.replicas.revision()
  }

  list(): Promise<readonly ReplicaRow[]> {
    return this.#options.replicas.list()
  }

  /** Goes on with the database as it is, where it lost changes. */
  async accept(): Promise<void> {
    await this.#options.replicas.accept(this.lease.revision.seen)
    await this.#renewals.now()
  }

  /** Ends the lease, and frees the row. Nothing is called after that. */
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
