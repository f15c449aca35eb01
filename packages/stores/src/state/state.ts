import {
  checkStateKey,
  checkStatePrefix,
  parseStateText,
  type StateOptions,
  type StateStore,
  toStateExpiry,
  toStateText,
} from '@toolgate/core/stores'
import { lockLost, sessionBytes } from '../leased-lock.ts'
import { bytesIn, numberIn, type Row, textIn } from '../rows.ts'
import { StateChanges } from '../state-changes.ts'
import { keysWith, toEntry, tried } from '../state-rows.ts'
import type { StoresDatabase } from './database.ts'

interface SqliteState extends StateStore {
  close(): void
}

/** Returns the state in the database, shared by every process that opens it. */
export function stateIn(db: StoresDatabase): SqliteState {
  const entries = new StateEntries(db)
  const { sql } = entries
  return {
    get(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      const row = db.read(() => sql.select.get(bytes))
      if (entries.isHere(row)) return parseStateText(textIn(row, 'value'))
      if (row) entries.forget([bytes])
      return undefined
    },
    async set(key, value, options) {
      await entries.put(key, value, options, true)
    },
    add: (key, value, options) => entries.put(key, value, options),
    take(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      return entries.change((count) => {
        const row = sql.select.get(bytes)
        if (row) sql.remove.run(bytes)
        if (!entries.isHere(row)) return undefined
        count()
        return parseStateText(textIn(row, 'value'))
      })
    },
    list(prefix) {
      checkStatePrefix(prefix)
      const rows = db.read(() => sql.selectRange.all(...keysWith(prefix)))
      const { here = [], gone = [] } = Object.groupBy(rows, (row) => (entries.isHere(row) ? 'here' : 'gone'))
      entries.forget(gone.map((row) => bytesIn(row, 'key')))
      return here.map(toEntry)
    },
    subscribe(listener) {
      // Polls hide a fault of the database, but this call must throw it.
      db.read(entries.readRevision)
      return entries.changes.subscribe(listener)
    },
    close: entries.changes.close,
  }
}

/** The entries of the state, and the listeners that their changes notify. */
class StateEntries {
  readonly sql: ReturnType<typeof statementsIn>
  readonly changes: StateChanges
  readonly #db: StoresDatabase

  constructor(db: StoresDatabase) {
    this.#db = db
    this.sql = statementsIn(db)
    this.changes = new StateChanges(async () => this.readRevision(), this.readRevision())
  }

  readonly readRevision = (): number => numberIn(this.sql.selectRevision.get() ?? {}, 'state_revision')

  isHere(row: Row | undefined): row is Row {
    return row !== undefined && (row['expires_at'] === null || Number(row['expires_at']) > this.#db.clock.wallMs())
  }

  /**
   * Removes entries that were found expired, so that they stay expired if a clock is set back. The answer does not wait
   * for the removal, and a failed removal does not change it.
   */
  forget(keys: readonly Uint8Array[]): void {
    if (keys.length === 0) return
    const nowMs = this.#db.clock.wallMs()
    void tried(() => this.#db.write(() => keys.forEach((key) => this.sql.removeEnded.run(key, nowMs))))
  }

  /** Runs work in one transaction. Notifies the listeners afterwards if the work counted a change. */
  change<T>(work: (count: () => void) => T) {
    let revision: number | undefined
    const count = (): void => {
      revision = numberIn(this.sql.countUp.get() ?? {}, 'state_revision')
    }
    const written = this.#db.write(() => {
      // A transaction may run again.
      revision = undefined
      return work(count)
    })
    return settled(written, () => {
      if (revision !== undefined) this.changes.notify(revision)
    })
  }

  /** Stores an entry and returns `true`. `replaces`: also replaces an entry with this key that has not expired. */
  put(key: string, value: unknown, options: StateOptions = {}, replaces = false) {
    checkStateKey(key)
    const text = toStateText(value)
    const expiresAt = toStateExpiry(options)
    const bytes = Buffer.from(key)
    return this.change((count) => {
      const { fence } = options
      if (fence && !this.sql.selectLease.get(sessionBytes(fence.session), fence.fencingToken)) throw lockLost()
      if (!replaces && this.isHere(this.sql.select.get(bytes))) return false
      this.sql.upsert.run(bytes, text, Number.isFinite(expiresAt) ? expiresAt : toBound(expiresAt))
      this.sql.removeExpired.run(this.#db.clock.wallMs())
      count()
      return true
    })
  }
}

function statementsIn(db: StoresDatabase) {
  return {
    select: db.prepare('SELECT value, expires_at FROM state WHERE key = ?'),
    selectRange: db.prepare('SELECT key, value, expires_at FROM state WHERE key >= ? AND key < ? ORDER BY key'),
    upsert: db.prepare(
      'INSERT INTO state (key, value, expires_at) VALUES (?, ?, ?) ' +
        'ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at',
    ),
    remove: db.prepare('DELETE FROM state WHERE key = ?'),
    // Each change adds at most one row, so expired rows are removed faster than rows are added.
    removeExpired: db.prepare(
      'DELETE FROM state WHERE id IN (SELECT id FROM state WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)',
    ),
    removeEnded: db.prepare('DELETE FROM state WHERE key = ? AND expires_at <= ?'),
    selectLease: db.prepare('SELECT 1 FROM leases WHERE session = ? AND token = ?'),
    selectRevision: db.prepare('SELECT state_revision FROM machine'),
    countUp: db.prepare('UPDATE machine SET state_revision = state_revision + 1 RETURNING state_revision'),
  }
}

/** Returns an infinite expiry as a column value: `null` for never, the earliest time for always expired. */
function toBound(expiresAt: number): number | null {
  return expiresAt > 0 ? null : -Number.MAX_VALUE
}

/** Calls `then` with a value, now or when it resolves, and returns the value. */
function settled<T>(value: T | Promise<T>, then: (value: T) => void) {
  if (!(value instanceof Promise)) {
    then(value)
    return value
  }
  return (async () => {
    const result = await value
    then(result)
    return result
  })()
}
