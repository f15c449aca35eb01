import { createEmitter } from '@toolgate/values'
import type { Clock, StateChange, StateStore } from '@toolgate/core/stores'
import { LEASE_MS } from './lease.ts'
import type { ReplicaStore } from './replica-store.ts'

interface SharedStateOptions {
  readonly state: StateStore
  readonly store: Pick<ReplicaStore, 'confirmations' | 'revision'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Called after a write. */
  readonly onWritten: () => void
}

/** The prefixes of keys whose writes resolve only when they are in force. */
const AWAITED = ['halt:', 'key:', 'connection:', 'login:', 'config:'] as const
const POLL_MS = 25

/**
 * The state of several replicas. A write that may tighten access resolves when it is in force: every replica that may
 * start calls has applied it, or its lease has expired.
 *
 * Its listeners are called by `apply` only, so the lease covers what they have applied.
 */
export class SharedState implements StateStore {
  readonly #options: SharedStateOptions
  readonly #changes = createEmitter<[StateChange]>()

  constructor(options: SharedStateOptions) {
    this.#options = options
  }

  get(key: string) {
    return this.#options.state.get(key)
  }

  list(prefix: string) {
    return this.#options.state.list(prefix)
  }

  async set(...args: Parameters<StateStore['set']>): Promise<void> {
    await this.#options.state.set(...args)
    await this.#settle(args[0])
  }

  async add(...args: Parameters<StateStore['add']>): Promise<boolean> {
    const isAdded = await this.#options.state.add(...args)
    if (isAdded) await this.#settle(args[0])
    return isAdded
  }

  async take(key: string): Promise<unknown> {
    const taken = await this.#options.state.take(key)
    if (taken !== undefined) await this.#settle(key)
    return taken
  }

  subscribe(listener: (change?: StateChange) => void): () => void {
    return this.#changes.subscribe(listener)
  }

  /** Applies the current state. Resolves when every listener has applied it. */
  async apply(): Promise<void> {
    const applied: Promise<void>[] = []
    this.#changes.emit({ waitUntil: (promise) => void applied.push(promise) })
    await Promise.all(applied)
  }

  close(): void {
    this.#changes.clear()
  }

  async #settle(key: string): Promise<void> {
    this.#options.onWritten()
    if (AWAITED.some((prefix) => key.startsWith(prefix))) await this.#inForce()
  }

  /**
   * Waits until a write is in force. A lease that does not cover the write was renewed before the write's answer, so it
   * expires at most 2 s later.
   */
  async #inForce(): Promise<void> {
    const { store, clock } = this.#options
    const endsMs = clock.monotonicMs() + LEASE_MS
    let revision: number | undefined
    while (clock.monotonicMs() < endsMs) {
      try {
        revision ??= await store.revision()
        if ((await store.confirmations(revision)).missing === 0) return
      } catch {
        // Time alone then puts the write in force.
      }
      const leftMs = Math.max(1, endsMs - clock.monotonicMs())
      await new Promise((resolve) => setTimeout(resolve, Math.min(POLL_MS, leftMs)))
    }
  }
}
