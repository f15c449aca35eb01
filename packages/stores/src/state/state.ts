import { type MaybePromise, type StateEntry, type StateStore } from '@toolgate/core'
import { checkStateKey, checkStatePrefix, parseStateText, toStateExpiry, toStateText } from '@toolgate/core/store-kit'
import { createChanges } from './changes.ts'
import type { StoresDatabase } from './database.ts'
import { settled } from './settled.ts'

export interface SqliteState extends StateStore {
  close(): void
}

/** No byte of UTF-8 is as great. */
const AFTER_ALL = Buffer.from([0xff])

/** Gives the state that is kept in the database, and seen by every process that opens it. */
export function stateIn(db: StoresDatabase): SqliteState {
  const select = db.prepare('SELECT value, expires_at FROM state WHERE key = ?')
  const selectRange = db.prepare('SELECT key, value, expires_at FROM state WHERE key >= ? AND key < ? ORDER BY key')
  const upsert = db.prepare(
    'INSERT INTO state (key, value, expires_at) VALUES (?, ?, ?) ' +
      'ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at',
  )
  const remove = db.prepare('DELETE FROM state WHERE key = ?')
  // Each change brings one row at most, so expired ones go faster than they come.
  const removeExpired = db.prepare(
    'DELETE FROM state WHERE id IN (SELECT id FROM state WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)',
  )
  const changes = createChanges(db)
  const isHere = (row: Row | undefined): row is Row =>
    row !== undefined && (row['expires_at'] === null || Number(row['expires_at']) > db.clock.wallMs())

  function put(key: Buffer, text: string, expiresAt: number): void {
    upsert.run(key, text, Number.isFinite(expiresAt) ? expiresAt : toBound(expiresAt))
    removeExpired.run(db.clock.wallMs())
    changes.count()
  }

  /** Tells the listeners after the commit, if there was a change. */
  function change<T>(work: () => T, isChange: (result: T) => boolean): MaybePromise<T> {
    return settled(db.write(work), (result) => {
      if (isChange(result)) changes.tell()
    })
  }

  return {
    get(key) {
      checkStateKey(key)
      const row = db.read(() => select.get(Buffer.from(key)))
      return isHere(row) ? parseStateText(row['value'] as string) : undefined
    },
    set(key, value, options) {
      checkStateKey(key)
      const text = toStateText(value)
      const expiresAt = toStateExpiry(options)
      return change(
        () => put(Buffer.from(key), text, expiresAt),
        () => true,
      )
    },
    add(key, value, options) {
      checkStateKey(key)
      const text = toStateText(value)
      const expiresAt = toStateExpiry(options)
      const bytes = Buffer.from(key)
      return change(
        () => {
          if (isHere(select.get(bytes))) return false
          put(bytes, text, expiresAt)
          return true
        },
        (added) => added,
      )
    },
    take(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      return change(
        () => {
          const row = select.get(bytes)
          if (!isHere(row)) return undefined
          remove.run(bytes)
          changes.count()
          return parseStateText(row['value'] as string)
        },
        (taken) => taken !== undefined,
      )
    },
    list(prefix) {
      checkStatePrefix(prefix)
      const from = Buffer.from(prefix)
      const rows = db.read(() => selectRange.all(from, Buffer.concat([from, AFTER_ALL])))
      return rows.filter(isHere).map(toEntry)
    },
    subscribe: changes.subscribe,
    close: changes.close,
  }
}

type Row = Record<string, unknown>

function toEntry(row: Row): StateEntry {
  return {
    key: Buffer.from(row['key'] as Uint8Array).toString(),
    value: parseStateText(row['value'] as string),
  }
}

/** What never expires has no expiry; what always was expired has the first. */
function toBound(expiresAt: number): number | null {
  return expiresAt > 0 ? null : -Number.MAX_VALUE
}
