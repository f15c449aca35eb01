import type { MaybePromise } from '@toolgate/core/internal'
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
  const sql = statementsIn(db)
  const readRevision = (): number => numberIn(sql.selectRevision.get() ?? {}, 'state_revision')
  const changes = new StateChanges(readRevision, readRevision())
  const isHere = (row: Row | undefined): row is Row =>
    row !== undefined && (row['expires_at'] === null || Number(row['expires_at']) > db.clock.wallMs())

  /**
   * Removes entries that were found expired, so that they stay expired if a clock is set back. The answer does not wait
   * for the removal, and a failed removal does not change it.
   */
  function forget(keys: readonly Uint8Array[]): void {
    if (keys.length === 0) return
    const nowMs = db.clock.wallMs()
    void tried(() => db.write(() => keys.forEach((key) => sql.removeEnded.run(key, nowMs))))
  }

  /** Runs work in one transaction. Notifies the listeners afterwards if the work counted a change. */
  function change<T>(work: (count: () => void) => T): MaybePromise<T> {
    let revision: number | undefined
    const count = (): void => {
      revision = numberIn(sql.countUp.get() ?? {}, 'state_revision')
    }
    const written = db.write(() => {
      // A transaction may run again.
      revision = undefined
      return work(count)
    })
    return settled(written, () => {
      if (revision !== undefined) changes.notify(revision)
    })
  }

  /** Stores an entry and returns `true`. `replaces`: also replaces an entry with this key that has not expired. */
  function put(key: string, value: unknown, options: StateOptions = {}, replaces = false): MaybePromise<boolean> {
    checkStateKey(key)
    const text = toStateText(value)
    const expiresAt = toStateExpiry(options)
    const bytes = Buffer.from(key)
    return change((count) => {
      const { fence } = options
      if (fence && !sql.selectLease.get(sessionBytes(fence.session), fence.fencingToken)) throw lockLost()
      if (!replaces && isHere(sql.select.get(bytes))) return false
      sql.upsert.run(bytes, text, Number.isFinite(expiresAt) ? expiresAt : toBound(expiresAt))
      sql.removeExpired.run(db.clock.wallMs())
      count()
      return true
    })
  }

  return {
    get(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      const row = db.read(() => sql.select.get(bytes))
      if (isHere(row)) return parseStateText(textIn(row, 'value'))
      if (row) forget([bytes])
      return undefined
    },
    async set(key, value, options) {
      await put(key, value, options, true)
    },
    add: (key, value, options) => put(key, value, options),
    take(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      return change((count) => {
        const row = sql.select.get(bytes)
        if (row) sql.remove.run(bytes)
        if (!isHere(row)) return undefined
        count()
        return parseStateText(textIn(row, 'value'))
      })
    },
    list(prefix) {
      checkStatePrefix(prefix)
      const rows = db.read(() => sql.selectRange.all(...keysWith(prefix)))
      const { here = [], gone = [] } = Object.groupBy(rows, (row) => (isHere(row) ? 'here' : 'gone'))
      forget(gone.map((row) => bytesIn(row, 'key')))
      return here.map(toEntry)
    },
    subscribe(listener) {
      // Polls hide a fault of the database, but this call must throw it.
      db.read(readRevision)
      return changes.subscribe(listener)
    },
    close: changes.close,
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
function settled<T>(value: MaybePromise<T>, then: (value: T) => void): MaybePromise<T> {
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
