import { closeSync, existsSync, fdatasyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type AuditEntry, type AuditRecord, type SealOptions } from '@toolgate/core/audit'
import { sealedOf } from '@toolgate/core/internal'
import { textIn } from './rows.ts'
import { createPrivately, numberOf, OPEN_TIMEOUT_MS, retryWhileBusy } from './sqlite-file.ts'

/** The maximum number of boxes that are removed at once. */
const ROWS = 50
/** The number of free pages of 4 KiB that are then returned to the disk. */
const PAGES = 1000
const BUSY_TIMEOUT_MS = 50

/**
 * The table of sealed inputs. It is created when an input is first sealed. Each box has a record, but not each record
 * has a box.
 */
const TABLE = `
  CREATE TABLE IF NOT EXISTS input_boxes (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, box TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS input_boxes_at ON input_boxes (at);
`

/** The sealed inputs of an audit, by record number. They are in its database, or in a file beside its JSON lines. */
export class StoredInputBoxes {
  readonly #db: DatabaseSync
  readonly #ownFile: string | undefined
  readonly #put: ReturnType<DatabaseSync['prepare']> | undefined
  readonly #get: ReturnType<DatabaseSync['prepare']> | undefined

  /** Opens the boxes. `ownFile`: the database contains nothing else, and is closed with this object. */
  constructor(db: DatabaseSync, { mayWrite, ownFile }: { readonly mayWrite: boolean; readonly ownFile?: string }) {
    this.#db = db
    this.#ownFile = ownFile
    if (!hasTable(db)) return
    this.#get = db.prepare('SELECT box FROM input_boxes WHERE seq = ?')
    if (mayWrite) this.#put = db.prepare('INSERT OR REPLACE INTO input_boxes VALUES (?, ?, ?)')
  }

  /** Stores the input of an entry, if it is sealed. Joins the caller's transaction, if any. */
  put(seq: number, entry: AuditEntry, options: SealOptions): void {
    const box = sealedOf(entry, options)?.box
    if (box !== undefined) this.putBox(seq, Math.trunc(entry.wallMs), box)
  }

  /** Stores an input that is already sealed. */
  putBox(seq: number, atMs: number, box: string): void {
    this.#put?.run(seq, atMs, box)
  }

  get(seq: number): string | undefined {
    const row = this.#get?.get(seq)
    return row && textIn(row, 'box')
  }

  of(records: readonly AuditRecord[]): readonly (string | undefined)[] {
    return records.map(({ seq }) => this.get(seq))
  }

  hasBefore(atMs: number): boolean {
    return this.#get !== undefined && this.#db.prepare('SELECT 1 FROM input_boxes WHERE at < ?').get(atMs) !== undefined
  }

  /** Removes some of the boxes older than a time. Returns whether there may be more. */
  removeBefore(atMs: number): boolean {
    return this.#remove('at < ? ORDER BY at', atMs)
  }

  /** Removes some of the boxes of records up to a number. Returns whether there may be more. */
  removeUpTo(seq: number): boolean {
    return this.#remove('seq <= ? ORDER BY seq', seq)
  }

  #remove(where: string, value: number): boolean {
    if (this.#get === undefined) return false
    // Removed inputs must not remain in free pages.
    this.#db.exec('PRAGMA secure_delete = ON')
    const sql = `DELETE FROM input_boxes WHERE seq IN (SELECT seq FROM input_boxes WHERE ${where} LIMIT ${ROWS})`
    const hasMore = Number(this.#db.prepare(sql).run(value).changes) === ROWS
    if (this.#ownFile !== undefined) this.#db.exec(`PRAGMA incremental_vacuum(${PAGES})`)
    if (!hasMore && this.#ownFile !== undefined) this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return hasMore
  }

  /** Runs an action in one transaction. Only for boxes with a file of their own. */
  inTransaction(action: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      action()
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  /** Syncs all stored boxes, so that they survive a power cut. */
  sync(): void {
    if (this.#ownFile !== undefined) syncLog(this.#ownFile)
  }

  close(): void {
    if (this.#ownFile !== undefined) this.#db.close()
  }
}

/** Returns the path of the sealed inputs of an audit in JSON lines. */
export function boxesBeside(path: string): string {
  return `${path}.inputs`
}

/** Creates the table in the database of an audit. */
export function prepareBoxes(db: DatabaseSync): void {
  db.exec(TABLE)
}

/**
 * Opens the sealed inputs beside a file of JSON lines. Returns `undefined` if there are none and none may be created.
 */
export function openBoxes(
  path: string,
  use: { readonly mayWrite: boolean; readonly make: boolean },
): StoredInputBoxes | undefined {
  const file = boxesBeside(path)
  if (!existsSync(file) && !use.make) return undefined
  if (use.mayWrite) createPrivately(file)
  const db = new DatabaseSync(file, { readOnly: !use.mayWrite, timeout: OPEN_TIMEOUT_MS })
  try {
    if (use.mayWrite) {
      db.exec('PRAGMA auto_vacuum = INCREMENTAL')
      retryWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
      db.exec('PRAGMA synchronous = NORMAL')
      prepareBoxes(db)
    }
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    return new StoredInputBoxes(db, { mayWrite: use.mayWrite, ownFile: file })
  } catch (error) {
    db.close()
    throw error
  }
}

/** Creates an empty file of sealed inputs beside a file of JSON lines, for a copy that may be on a read-only disk. */
export function createBoxes(path: string): StoredInputBoxes {
  const file = boxesBeside(path)
  createPrivately(file)
  const db = new DatabaseSync(file)
  prepareBoxes(db)
  return new StoredInputBoxes(db, { mayWrite: true, ownFile: file })
}

function hasTable(db: DatabaseSync): boolean {
  return numberOf(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'input_boxes'") > 0
}

/** Syncs the database's log, including the commits of other processes. */
export function syncLog(path: string): void {
  const fd = openSync(`${path}-wal`, 'r')
  try {
    fdatasyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Returns the inputs of records. */
export function boxesAt(boxes: StoredInputBoxes | undefined, seqs: readonly number[]): ReadonlyMap<number, string> {
  return new Map(
    seqs.flatMap((seq) => {
      const box = boxes?.get(seq)
      return box === undefined ? [] : [[seq, box] as const]
    }),
  )
}
