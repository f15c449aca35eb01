import { closeSync, existsSync, fdatasyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type AuditEntry, type AuditRecord, type SealOptions } from '@toolgate/core/audit'
import { sealedOf } from '@toolgate/core/internal'
import { textIn } from './rows.ts'
import { createPrivately, numberOf, OPEN_TIMEOUT_MS, retryWhileBusy } from './sqlite-file.ts'

/** How many boxes are removed at once. */
const ROWS = 50
/** How many free pages of 4 KiB are given back to the disk then. */
const PAGES = 1000
const BUSY_TIMEOUT_MS = 50

/** The table is made when inputs are sealed for the first time. It has no box without a record, but records may have no box. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS input_boxes (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, box TEXT NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS input_boxes_at ON input_boxes (at);
`

/** The sealed inputs of an audit, by the numbers of their records: in its database, or beside its file of JSON lines. */
export class InputBoxes {
  readonly #db: DatabaseSync
  readonly #ownFile: string | undefined
  readonly #put: ReturnType<DatabaseSync['prepare']> | undefined
  readonly #get: ReturnType<DatabaseSync['prepare']> | undefined

  /** `ownFile`: the database has nothing else, and is closed with this. */
  constructor(db: DatabaseSync, { mayWrite, ownFile }: { readonly mayWrite: boolean; readonly ownFile?: string }) {
    this.#db = db
    this.#ownFile = ownFile
    if (!hasTable(db)) return
    this.#get = db.prepare('SELECT box FROM input_boxes WHERE seq = ?')
    if (mayWrite) this.#put = db.prepare('INSERT OR REPLACE INTO input_boxes VALUES (?, ?, ?)')
  }

  /** Keeps the input of an entry, if it is sealed. In the transaction of the caller, if there is one. */
  put(seq: number, entry: AuditEntry, options: SealOptions): void {
    const box = sealedOf(entry, options)?.box
    if (box !== undefined) this.putBox(seq, Math.trunc(entry.wallMs), box)
  }

  /** Keeps an input that is sealed already. */
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

  /** Removes some of the boxes that are older than a time. Returns whether there may be more. */
  removeBefore(atMs: number): boolean {
    return this.#remove('at < ? ORDER BY at', atMs)
  }

  /** Removes some of the boxes of records up to a number. Returns whether there may be more. */
  removeUpTo(seq: number): boolean {
    return this.#remove('seq <= ? ORDER BY seq', seq)
  }

  #remove(where: string, value: number): boolean {
    if (this.#get === undefined) return false
    // What is removed must not be left in free pages.
    this.#db.exec('PRAGMA secure_delete = ON')
    const sql = `DELETE FROM input_boxes WHERE seq IN (SELECT seq FROM input_boxes WHERE ${where} LIMIT ${ROWS})`
    const hasMore = Number(this.#db.prepare(sql).run(value).changes) === ROWS
    if (this.#ownFile !== undefined) this.#db.exec(`PRAGMA incremental_vacuum(${PAGES})`)
    if (!hasMore && this.#ownFile !== undefined) this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return hasMore
  }

  /** Runs an action in one transaction of a file of its own. */
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

  /** Makes everything that was kept survive a power cut. */
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

/** Makes the table of a database of an audit. */
export function prepareBoxes(db: DatabaseSync): void {
  db.exec(TABLE)
}

/** Opens the sealed inputs beside a file of JSON lines; `undefined` if there are none, and none are to be made. */
export function openBoxes(
  path: string,
  use: { readonly mayWrite: boolean; readonly make: boolean },
): InputBoxes | undefined {
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
    return new InputBoxes(db, { mayWrite: use.mayWrite, ownFile: file })
  } catch (error) {
    db.close()
    throw error
  }
}

/** Makes an empty file of sealed inputs beside a file of JSON lines, for a copy: it can be read where nothing can be written. */
export function createBoxes(path: string): InputBoxes {
  const file = boxesBeside(path)
  createPrivately(file)
  const db = new DatabaseSync(file)
  prepareBoxes(db)
  return new InputBoxes(db, { mayWrite: true, ownFile: file })
}

function hasTable(db: DatabaseSync): boolean {
  return numberOf(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'input_boxes'") > 0
}

/** Syncs the log of a database, with the commits of other processes. */
export function syncLog(path: string): void {
  const fd = openSync(`${path}-wal`, 'r')
  try {
    fdatasyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
