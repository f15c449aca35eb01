import { randomUUID } from 'node:crypto'
import type { Clock, StateStore } from '@toolgate/core/stores'

interface TaskLeasesOptions {
  readonly state: Pick<StateStore, 'add' | 'get' | 'set' | 'take'>
  readonly clock: Pick<Clock, 'wallMs'>
  /** How long a process that stops renewing keeps a task. Default 10 s. */
  readonly leaseMs?: number | undefined
}

const DEFAULT_LEASE_MS = 10_000
const LEASES = 'gateway/task-followers/'

/** Ensures that one process at a time, of all that share a state store, continues a task and records its end. */
export class TaskLeases {
  readonly leaseMs: number
  readonly #state: TaskLeasesOptions['state']
  readonly #clock: TaskLeasesOptions['clock']
  readonly #id = randomUUID()

  constructor({ state, clock, leaseMs = DEFAULT_LEASE_MS }: TaskLeasesOptions) {
    this.#state = state
    this.#clock = clock
    this.leaseMs = leaseMs
  }

  /** Returns `false` if a process, including this one, already has the task. */
  async take(taskId: string): Promise<boolean> {
    return this.#state.add(LEASES + taskId, this.#id, this.#until())
  }

  /** Returns `false` if another process has taken the task meanwhile. */
  async renew(taskId: string): Promise<boolean> {
    const holder = await this.#state.get(LEASES + taskId)
    if (holder !== undefined && holder !== this.#id) return false
    await this.#state.set(LEASES + taskId, this.#id, this.#until())
    return true
  }

  async release(taskId: string): Promise<void> {
    if ((await this.#state.get(LEASES + taskId)) === this.#id) await this.#state.take(LEASES + taskId)
  }

  #until(): { readonly expiresAt: number } {
    return { expiresAt: this.#clock.wallMs() + this.leaseMs }
  }
}
