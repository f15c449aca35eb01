import { isObject } from '@toolgate/values/json'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'
import type { GroupElsewhere, GroupRow } from '../../model/rows.ts'
import type { Replica, ReplicaRow } from '../../replicas/replica-store.ts'
import type { GroupWatch } from './group-watch.ts'

export interface FleetGroupsDeps {
  readonly self: Pick<Replica, 'id' | 'incarnation'>
  readonly state: Pick<StateStore, 'list' | 'set' | 'take'>
  /** Returns the rows of all replicas. */
  readonly replicas: () => Promise<readonly ReplicaRow[]>
  /** Returns the groups as they are here. */
  readonly rows: () => readonly GroupRow[]
  readonly watch: Pick<GroupWatch, 'subscribe'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly onFault: (error: unknown) => void
  /** How often the others are read while there are listeners. Default 1 s. */
  readonly everyMs?: number
}

/** What a replica tells the others of a group that cannot be used there, or was not probed yet. */
type Told = Omit<GroupElsewhere, 'replica'>

const PREFIX = 'gateway/groups/'
/** What a lost replica has told is not read from then on, and is forgotten after this. */
const KEPT_MS = 24 * 60 * 60_000
/** Of one group. */
const MAX_NAMED = 20
const MAX_GROUPS = 1000

/**
 * The groups of all replicas. Each replica probes its own network, and tells the others which groups it cannot use. Nothing is
 * read without listeners.
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

  /** Tells the others how the groups are here, if that is not what they were told. */
  tell(): void {
    this.#telling ??= this.#tell()
      .catch(this.#deps.onFault)
      .finally(() => (this.#telling = undefined))
  }

  /** Returns rows of this replica with its name, and the replicas where a group is in another state. */
  withOthers(rows: readonly GroupRow[]): readonly GroupRow[] {
    return rows.map((row) => {
      const elsewhere = this.#others.get(row.name)?.filter(({ badge }) => badge !== row.badge) ?? []
      const named = elsewhere.slice(0, MAX_NAMED)
      return { ...row, replica: this.#deps.self.id, ...(named.length > 0 && { elsewhere: named }) }
    })
  }

  /** Reads what the others have told. */
  async refresh(): Promise<void> {
    const { self, state, replicas } = this.#deps
    const [entries, all] = await Promise.all([state.list(PREFIX), replicas()])
    const told = new Map(entries.map((entry) => [entry.key.slice(PREFIX.length), toTold(entry)]))
    const others = all.filter(({ incarnation, isLive }) => isLive && incarnation !== self.incarnation)
    const next = new Map<string, readonly GroupElsewhere[]>()
    for (const { name, badge } of this.#deps.rows()) {
      // What a replica does not name can be used there; whether it needs opening does not depend on the replica.
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

  /** Calls the listener with the names of groups that have changed elsewhere. Returns a function that unsubscribes. */
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
