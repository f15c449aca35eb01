import { randomUUID } from 'node:crypto'
import type { Clock, StateStore } from '@toolgate/core/stores'

interface LeasesOptions {
  readonly state: Pick<StateStore, 'add' | 'get' | 'set' | 'take'>
  readonly clock: Pick<Clock, 'wallMs'>
  /** The prefix of the entries in the state. */
  readonly prefix: string
  /** How long a process that stops renewing keeps a lease. Default 10 s. */
  readonly leaseMs?: number | undefined
}

const DEFAULT_LEASE_MS = 10_000

/** Gives each piece of work, such as a task, to one process at a time, of all that share a state store. */
export class WorkLeases {
  readonly leaseMs: number
  readonly #state: LeasesOptions['state']
  readonly #clock: LeasesOptions['clock']
  readonly #prefix: string
  readonly #id = randomUUID()

  constructor({ state, clock, prefix, leaseMs = DEFAULT_LEASE_MS }: LeasesOptions) {
    this.#state = state
    this.#clock = clock
    this.#prefix = prefix
    this.leaseMs = leaseMs
  }

  /** Returns `false` if a process, including this one, already has the lease. */
  async take(id: string): Promise<boolean> {
    return this.#state.add(this.#prefix + id, this.#id, this.#until())
  }

  /** Returns `false` if another process has taken the lease meanwhile. */
  async renew(id: string): Promise<boolean> {
    const holder = await this.#state.get(this.#prefix + id)
    if (holder !== undefined && holder !== this.#id) return false
    await this.#state.set(this.#prefix + id, this.#id, this.#until())
    return true
  }

  async release(id: string): Promise<void> {
    if ((await this.#state.get(this.#prefix + id)) === this.#id) await this.#state.take(this.#prefix + id)
  }

  #until(): { readonly expiresAt: number } {
    return { expiresAt: this.#clock.wallMs() + this.leaseMs }
  }
}
