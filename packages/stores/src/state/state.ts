import { createEmitter, type MaybePromise } from '@toolgate/core/internal'
import {
  checkStateKey,
  checkStatePrefix,
  parseStateText,
  type StateEntry,
  type StateOptions,
  type StateStore,
  toStateExpiry,
  toStateText,
} from '@toolgate/core/stores'
import { lockLost, sessionBytes } from '../leased-lock.ts'
import { bytesIn, type Row, textIn } from '../rows.ts'
import type { StoresDatabase } from './database.ts'

interface SqliteState extends StateStore {
  close(): void
}

/** Greater than every byte of UTF-8. */
const AFTER_ALL = Buffer.from([0xff])

/** Returns the state in the database, shared by every process that opens it. */
export function stateIn(db: StoresDatabase): SqliteState {
  const select = db.prepare('SELECT value, expires_at FROM state WHERE key = ?')
  const selectRange = db.prepare('SELECT key, value, expires_at FROM state WHERE key >= ? AND key < ? ORDER BY key')
  const upsert = db.prepare(
    'INSERT INTO state (key, value, expires_at) VALUES (?, ?, ?) ' +
      'ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at',
  )
  const remove = db.prepare('DELETE FROM state WHERE key = ?')
  // Each change adds one row at most, so expired ones are removed faster than they are added.
  const removeExpired = db.prepare(
    'DELETE FROM state WHERE id IN (SELECT id FROM state WHERE expires_at <= ? ORDER BY expires_at LIMIT 2)',
  )
  const removeEnded = db.prepare('DELETE FROM state WHERE key = ? AND expires_at <= ?')
  const selectLease = db.prepare('SELECT 1 FROM leases WHERE session = ? AND token = ?')
  const changes = createChanges(db)
  const isHere = (row: Row | undefined): row is Row =>
    row !== undefined && (row['expires_at'] === null || Number(row['expires_at']) > db.clock.wallMs())

  /**
   * Removes entries that were seen to have expired, so that a clock that is set back later shows none of them again. The answer
   * does not wait for it, and is as true if the database cannot be written.
   */
  function forget(keys: readonly Uint8Array[]): void {
    if (keys.length === 0) return
    const nowMs = db.clock.wallMs()
    void tried(() => db.write(() => keys.forEach((key) => removeEnded.run(key, nowMs))))
  }

  function checkFence({ fence }: StateOptions = {}): void {
    if (fence && !selectLease.get(sessionBytes(fence.session), fence.fencingToken)) throw lockLost()
  }

  function put(key: Buffer, text: string, expiresAt: number): void {
    upsert.run(key, text, Number.isFinite(expiresAt) ? expiresAt : toBound(expiresAt))
    removeExpired.run(db.clock.wallMs())
    changes.count()
  }

  /** Notifies the listeners after the commit, if there was a change. */
  function change<T>(work: () => T, isChange: (result: T) => boolean): MaybePromise<T> {
    return settled(db.write(work), (result) => {
      if (isChange(result)) changes.notify()
    })
  }

  return {
    get(key) {
      checkStateKey(key)
      const bytes = Buffer.from(key)
      const row = db.read(() => select.get(bytes))
      if (isHere(row)) return parseStateText(textIn(row, 'value'))
      if (row) forget([bytes])
      return undefined
    },
    set(key, value, options) {
      checkStateKey(key)
      const text = toStateText(value)
      const expiresAt = toStateExpiry(options)
      return change(
        () => {
          checkFence(options)
          put(Buffer.from(key), text, expiresAt)
        },
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
          checkFence(options)
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
          if (row) remove.run(bytes)
          if (!isHere(row)) return undefined
          changes.count()
          return parseStateText(textIn(row, 'value'))
        },
        (taken) => taken !== undefined,
      )
    },
    list(prefix) {
      checkStatePrefix(prefix)
      const from = Buffer.from(prefix)
      const rows = db.read(() => selectRange.all(from, Buffer.concat([from, AFTER_ALL])))
      const { here = [], gone = [] } = Object.groupBy(rows, (row) => (isHere(row) ? 'here' : 'gone'))
      forget(gone.map((row) => bytesIn(row, 'key')))
      return here.map(toEntry)
    },
    subscribe: changes.subscribe,
    close: changes.close,
  }
}

function toEntry(row: Row): StateEntry {
  return {
    key: Buffer.from(bytesIn(row, 'key')).toString(),
    value: parseStateText(textIn(row, 'value')),
  }
}

/** Returns an infinite expiry as a column: `null` for never, the earliest time for always. */
function toBound(expiresAt: number): number | null {
  return expiresAt > 0 ? null : -Number.MAX_VALUE
}

interface Changes {
  /** Counts a change, in the transaction that makes it. */
  count(): void
  /** Notifies the listeners of a change by this process. */
  notify(): void
  subscribe(listener: () => void): () => void
  close(): void
}

/** Well below the second within which a change must be seen. */
const POLL_MS = 250

/**
 * Returns the notifications of changes. While there are listeners, it polls the file four times a second for changes of
 * other processes.
 */
function createChanges(db: StoresDatabase): Changes {
  const countUp = db.prepare('UPDATE machine SET state_revision = state_revision + 1')
  const selectRevision = db.prepare('SELECT state_revision FROM machine')
  const selectVersion = db.prepare('PRAGMA data_version')
  const emitter = createEmitter()
  let timer: NodeJS.Timeout | undefined
  let version: unknown
  let revision: unknown

  function readRevision(): unknown {
    return selectRevision.get()?.['state_revision']
  }

  function poll(): void {
    try {
      // Changes with each commit of another connection, of any table.
      const now = selectVersion.get()?.['data_version']
      if (now === version) return
      const latest = readRevision()
      version = now
      if (latest === revision) return
      revision = latest
    } catch {
      // The next poll is soon; reads and writes report the fault meanwhile.
      return
    }
    emitter.emit()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    count: () => void countUp.run(),
    notify() {
      if (emitter.size === 0) return
      try {
        // This notification also covers earlier changes of other processes.
        revision = readRevision()
      } catch {
        // The change was made; at worst the next poll notifies once more.
      }
      emitter.emit()
    },
    subscribe(listener) {
      if (timer === undefined) {
        db.read(() => {
          version = selectVersion.get()?.['data_version']
          revision = readRevision()
        })
        timer = setInterval(poll, POLL_MS).unref()
      }
      const unsubscribe = emitter.subscribe(listener)
      return () => {
        unsubscribe()
        if (emitter.size === 0) stop()
      }
    },
    close() {
      emitter.clear()
      stop()
    },
  }
}

/** Does what may fail without harm. */
export async function tried(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch {
    // Whoever needs the database learns of its fault.
  }
}

/** Returns a value after calling `then` with it: at once, or when it resolves. */
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
