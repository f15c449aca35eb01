import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/** How long opening waits for other processes that open or write. */
export const OPEN_TIMEOUT_MS = 5000
const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6

/** Makes the file where there is none. Stores tell who did what, so only the owner may read them. */
export function createPrivately(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** SQLite does not wait by itself when two processes turn to WAL at once. */
export function retryWhileBusy(action: () => void): void {
  const deadlineMs = performance.now() + OPEN_TIMEOUT_MS
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadlineMs) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
  }
}

export function numberOf(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0])
}

/** The low byte is the kind of error; the others say more about it. */
export function isBusy(error: unknown): boolean {
  const kind = Number((error as { errcode?: unknown }).errcode) & 0xff
  return kind === SQLITE_BUSY || kind === SQLITE_LOCKED
}
