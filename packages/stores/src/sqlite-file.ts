import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { errnoOf } from '@toolgate/values'

/** The longest wait of an opening for other processes, in milliseconds. */
export const OPEN_TIMEOUT_MS = 5000
const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6

/**
 * Creates the file if it does not exist. Only the owner may read it, unless `mode` allows others, because stores
 * contain who did what.
 *
 * @throws for a link without a target: the file would be created elsewhere, readable by everyone
 */
export function createPrivately(path: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true })
  try {
    closeSync(openSync(path, 'wx', mode))
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    if (!existsSync(path)) throw new Error(`${path} is a link to a file that does not exist`, { cause: error })
  }
}

/**
 * Repeats an action while the database is busy, because SQLite does not wait when two processes switch to WAL at once.
 */
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

/** Whether another process holds the lock that a statement needs. */
export function isBusy(error: unknown): boolean {
  // The low byte is the kind of the error.
  const kind = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
  return kind === SQLITE_BUSY || kind === SQLITE_LOCKED
}
