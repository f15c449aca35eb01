import { type ManualClock, manualClock } from '@toolgate/testing'
import { createEmitter } from '@toolgate/values'
import { memoryState, type StateStore } from '@toolgate/core/stores'
import { LEASE_MS } from '../replica/lease.ts'
import type { Replica, ReplicaRow, ReplicaWord } from '../postgres/replicas.ts'
import type { ReplicaStore } from '../replica/replica-store.ts'

/** A database in memory that several replicas of one process share. A test sets its faults. */
export class FakeDatabase {
  readonly clock: ManualClock = manualClock()
  readonly state = memoryState({ clock: this.clock })
  readonly rows = new Map<string, ReplicaRow>()
  revision = 0
  timeline = 'a/1'
  accepted = 'a/1'
  /** Runs before each query: does nothing, fails, or waits. */
  fault: () => Promise<void> | void = () => {}
  readonly changes = createEmitter()

  constructor() {
    this.state.subscribe(() => {
      this.revision++
      this.changes.emit()
    })
  }

  /** Returns a replica's own connection. It answers later, and may be cut. */
  connect(isCut: () => boolean = () => false): {
    readonly state: StateStore
    readonly replicas: ReplicaStore
  } {
    const ask = async <T>(work: () => T | Promise<T>): Promise<T> => {
      await this.fault()
      if (isCut()) throw new Error('cut')
      await new Promise(setImmediate)
      return work()
    }
    const { state } = this
    return {
      state: {
        get: (key) => ask(() => state.get(key)),
        set: (...args) => ask(() => state.set(...args)),
        add: (...args) => ask(() => state.add(...args)),
        take: (key) => ask(() => state.take(key)),
        list: (prefix) => ask(() => state.list(prefix)),
        subscribe: (listener) => this.changes.subscribe(() => listener()),
      },
      replicas: {
        join: (replica) => ask(() => this.#join(replica)),
        renew: (replica, applied, word = {}) => ask(() => this.#renew(replica, applied, word)),
        leave: ({ id }) => ask(() => void this.rows.delete(id)),
        list: () => ask(() => [...this.rows.values()].map((row) => ({ ...row, isLive: this.#isLive(row) }))),
        confirmations: (revision) => ask(() => this.#confirmations(revision)),
        revision: () => ask(() => this.revision),
        accept: (seen) => ask(() => this.#accept(seen)),
      },
    }
  }

  #isLive({ renewedAt }: ReplicaRow): boolean {
    return renewedAt + LEASE_MS > this.clock.wallMs()
  }

  #join(replica: Replica): boolean {
    const other = this.rows.get(replica.id)
    if (other && other.incarnation !== replica.incarnation && this.#isLive(other)) return false
    const now = this.clock.wallMs()
    this.rows.set(replica.id, { ...replica, applied: 0, word: {}, isLive: true, joinedAt: now, renewedAt: now })
    return true
  }

  #renew(replica: Replica, applied: number, word: ReplicaWord) {
    const row = this.rows.get(replica.id)
    const isTaken = row?.incarnation !== replica.incarnation
    const wasLate = row === undefined || !this.#isLive(row)
    if (row && !isTaken) this.rows.set(replica.id, { ...row, applied, word, renewedAt: this.clock.wallMs() })
    const { revision, timeline } = this
    return { revision, timeline, isAccepted: timeline === this.accepted, isTaken, wasLate }
  }

  #confirmations(revision: number) {
    const live = [...this.rows.values()].filter((row) => this.#isLive(row))
    const applied = live.filter((row) => row.applied >= revision).length
    return { applied, missing: live.length - applied }
  }

  #accept(seen: number): void {
    this.accepted = this.timeline
    this.revision = Math.max(this.revision, seen) + 1
  }
}
