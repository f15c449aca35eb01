import { isObject } from '@toolgate/values/json'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'
import type { GroupElsewhere, GroupRow } from '../../model/rows.ts'
import type { Replica, ReplicaRow } from '../../replicas/replica-store.ts'
import type { GroupWatch } from './group-watch.ts'

interface FleetGroupsDeps {
  readonly self: Pick<Replica, 'id' | 'incarnation'>
  readonly state: Pick<StateStore, 'list' | 'set' | 'take'>
  /** Returns the rows of all replicas. */
  readonly replicas: () => Promise<readonly ReplicaRow[]>
  /** Returns the groups of this replica. */
  readonly rows: () => readonly GroupRow[]
  readonly watch: Pick<GroupWatch, 'subscribe'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly onFault: (error: unknown) => void
  /** How often the other replicas' groups are read while there are listeners. Default 1 s. */
  readonly everyMs?: number
}

/** The published state of a group that is unavailable at a replica, or not probed yet. */
type Told = Omit<GroupElsewhere, 'replica'>

const PREFIX = 'gateway/groups/'
/** Published states of a lost replica are ignored, and removed after this time. */
const KEPT_MS = 24 * 60 * 60_000
/** The maximum number of replicas that are named for one group. */
const MAX_NAMED = 20
const MAX_GROUPS = 1000

/**
 * The groups of all replicas. Each replica probes its own network, and publishes which groups are unavailable there.
 * Without listeners, nothing is read.
 */
export class FleetGroups {
  readonly #deps: FleetGroupsDeps
  readonly #key: string
  readonly #listeners = new Set<(names: readonly string[]) => void>()
  readonly #unsubscribe: () => void
  #others: ReadonlyMap<string, readonly GroupElsewhere[]> = new Map()
  #told: string | undefined
  #telling: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: FleetGroupsDeps) {
    this.#deps = deps
    this.#key = PREFIX + deps.self.incarnation
    this.#unsubscribe = deps.watch.subscribe(() => this.tell())
  }

  /** Publishes the states of the groups here, if they have changed since the last publication. */
  tell(): void {
    this.#telling ??= this.#tell()
      .catch(this.#deps.onFault)
      .finally(() => (this.#telling = undefined))
  }

  /** Returns rows with this replica's name, and the replicas at which a group has another state. */
  withOthers(rows: readonly GroupRow[]): readonly GroupRow[] {
    return rows.map((row) => {
      const elsewhere = this.#others.get(row.name)?.filter(({ badge }) => badge !== row.badge) ?? []
      const named = elsewhere.slice(0, MAX_NAMED)
      return { ...row, replica: this.#deps.self.id, ...(named.length > 0 && { elsewhere: named }) }
    })
  }

  /** Reads the published states of the other replicas. */
  async refresh(): Promise<void> {
    const { self, state, replicas } = this.#deps
    const [entries, all] = await Promise.all([state.list(PREFIX), replicas()])
    const told = new Map(entries.map((entry) => [entry.key.slice(PREFIX.length), toTold(entry)]))
    const others = all.filter(({ incarnation, isLive }) => isLive && incarnation !== self.incarnation)
    const next = new Map<string, readonly GroupElsewhere[]>()
    for (const { name, badge } of this.#deps.rows()) {
      // A group that a replica does not publish is available there. Whether it needs unlocking does not depend on the
      // replica.
      const usable = badge === 'unavailable' || badge === 'unknown' ? 'available' : badge
      const each = others.flatMap(({ id, incarnation }) => {
        const of = told.get(incarnation)
        return of ? [{ replica: id, ...(of.get(name) ?? { badge: usable ?? 'always' }) }] : []
      })
      next.set(name, each)
    }
    const before = this.#others
    this.#others = next
    const changed = [...next].filter(([name, each]) => JSON.stringify(each) !== JSON.stringify(before.get(name) ?? []))
    const names = changed.map(([name]) => name)
    if (names.length > 0) for (const listener of this.#listeners) listener(names)
  }

  /**
   * Calls the listener with the names of groups that have changed at other replicas. Returns a function that
   * unsubscribes.
   */
  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    this.#schedule()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#unsubscribe()
    this.#listeners.clear()
    this.#stop()
    await this.#telling
    await Promise.resolve(this.#deps.state.take(this.#key)).catch(this.#deps.onFault)
  }

  async #tell(): Promise<void> {
    const { rows, state, clock } = this.#deps
    while (!this.#isClosed) {
      const told = rows().flatMap(({ name, badge, reason, since }): [string, Told][] =>
        badge === 'unavailable' || badge === 'unknown'
          ? [[name, { badge, ...(reason !== undefined && { reason }), ...(since !== undefined && { since }) }]]
          : [],
      )
      const value = told.slice(0, MAX_GROUPS)
      const text = JSON.stringify(value)
      if (text === this.#told) return
      await state.set(this.#key, value, { expiresAt: clock.wallMs() + KEPT_MS })
      this.#told = text
    }
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#listeners.size === 0) return
    this.#timer = setTimeout(() => {
      this.refresh()
        .catch(this.#deps.onFault)
        .finally(() => {
          this.#timer = undefined
          this.#schedule()
        })
    }, this.#deps.everyMs ?? 1000).unref()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

function toTold({ value }: StateEntry): ReadonlyMap<string, Told> {
  const told = new Map<string, Told>()
  for (const entry of Array.isArray(value) ? value.slice(0, MAX_GROUPS) : []) {
    const [name, of] = Array.isArray(entry) ? (entry as readonly unknown[]) : []
    if (typeof name !== 'string' || !isObject(of)) continue
    const { badge, reason, since } = of
    if (badge !== 'unavailable' && badge !== 'unknown') continue
    told.set(name, {
      badge,
      ...(typeof reason === 'string' && { reason }),
      ...(typeof since === 'number' && { since }),
    })
  }
  return told
}
