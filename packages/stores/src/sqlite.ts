import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import {
  type AuditEntry,
  type ChainEnd,
  checkCountQuery,
  createRecordTree,
  type RecordTree,
  createSealer,
  GENESIS,
  readLink,
  recordKeys,
} from '@toolgate/core/audit'
import { type AuditFile, openError } from './audit-file.ts'
import {
  type AuditFileOptions,
  checkAuditFileOptions,
  type FileAudit,
  sealOptionsOf,
  sealsInputs,
  withInputKey,
} from './audit-options.ts'
import { AUDIT, countIn, exportRows, newestOf, rowsIn, toRecord } from './audit-rows.ts'
import type { Segment } from './checkpoint-file.ts'
import { StoredInputBoxes, prepareBoxes, syncLog } from './input-boxes.ts'
import { openAudit } from './open-audit.ts'
import { removalFrom } from './sqlite-removal.ts'
import { lockWithOthers, type OpenersLock } from './locks.ts'
import { type Row, textIn } from './rows.ts'
import { checkSchema, prepareSchema } from './schema.ts'
import { createPrivately, isBusy, OPEN_TIMEOUT_MS, retryWhileBusy } from './sqlite-file.ts'

export type { AuditFileOptions, CheckpointOptions, FileAudit } from './audit-options.ts'
export { openSqliteStores, type SqliteStores, type SqliteStoresOptions } from './state/open-stores.ts'

/** The longest wait for another process's commit, in milliseconds. The event loop is blocked meanwhile. */
const BUSY_TIMEOUT_MS = 50

/**
 * Opens an audit in an SQLite database, which several processes may write to.
 *
 * @throws {ConfigError} for an unknown option
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be opened or is not an audit
 * @example
 * const audit = openSqliteAudit({ path: './toolgate.db', mode: 'required' })
 */
export function openSqliteAudit(given: AuditFileOptions): FileAudit {
  checkAuditFileOptions('openSqliteAudit', given)
  const path = resolve(given.path)
  try {
    const options = withInputKey(given)
    return openAudit(openDatabase({ ...options, path }), options)
  } catch (error) {
    throw openError(path, error)
  }
}

function openDatabase(options: AuditFileOptions): AuditFile {
  const { path, mode = 'batched', readOnly = false } = options
  let db: DatabaseSync | undefined
  let lock: OpenersLock | undefined
  try {
    if (!readOnly) createPrivately(path)
    db = new DatabaseSync(path, { readOnly, timeout: OPEN_TIMEOUT_MS })
    prepareDatabase(db, options)
    if (!readOnly) lock = lockWithOthers(path, OPEN_TIMEOUT_MS)
    return auditIn({ db, path, mode, options, lock })
  } catch (error) {
    lock?.release()
    db?.close()
    throw error
  }
}

function prepareDatabase(db: DatabaseSync, options: AuditFileOptions): void {
  const { path, mode = 'batched', readOnly = false } = options
  if (!readOnly) {
    checkSchema(db, AUDIT, { mayBeNew: true })
    // Only a new database accepts this. It allows the space of removed records to be returned to the disk.
    db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    retryWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
    db.exec(`PRAGMA synchronous = ${mode === 'required' ? 'FULL' : 'NORMAL'}`)
    prepareSchema(db, path, AUDIT)
    if (sealsInputs(options)) prepareBoxes(db)
  }
  checkSchema(db, AUDIT, { mayBeNew: false })
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
}

interface OpenDatabase {
  readonly db: DatabaseSync
  readonly path: string
  readonly mode: 'batched' | 'required'
  readonly options: AuditFileOptions
  /** The lock. Absent if the audit is opened only for reading. */
  readonly lock: OpenersLock | undefined
}

function auditIn({ db, path, mode, options, lock }: OpenDatabase): AuditFile {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const newest = db.prepare(NEWEST)
  const insert = lock && db.prepare('INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)')
  const rows = rowsIn(db)
  const count = countIn(rows)
  const sealing = sealOptionsOf(options)
  const sealer = createSealer(sealing)
  const removal = removalFrom(path)
  const hasBoxes = lock !== undefined && sealsInputs(options)
  const boxes = new StoredInputBoxes(db, { mayWrite: hasBoxes })

  /** Runs an action in one transaction. An exception undoes it. */
  function inTransaction(action: () => void): void {
    begin.run()
    try {
      action()
      commit.run()
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  function insertSealed(entry: AuditEntry): void {
    const record = sealer.seal(entry)
    const { tool = null, user = null, session = null, atMs } = recordKeys(entry)
    insert?.run(sealer.seq, entry.event, tool, user, session, atMs, record)
    if (hasBoxes) boxes.put(sealer.seq, entry, sealing)
  }

  return {
    path,
    boxes,
    isSole: lock?.isSole === true,
    append(entries) {
      inTransaction(() => {
        // The end is read inside the transaction, because another process may have written since.
        sealer.goOnFrom(endOf(newest.get()))
        for (const entry of entries) insertSealed(entry)
      })
    },
    async sync() {
      // In `required` mode each commit is synced. In `batched` mode this checkpoint of the WAL syncs them.
      if (mode === 'batched') db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    },
    async checkpoint(file, _sync, pruned) {
      const from = file.last()?.seq ?? 0
      const tree = createRecordTree()
      const { seq: upTo } = endOf(db.prepare(NEWEST).get())
      let read = from
      // Calls may run while a long backlog is read. The rest is read when no other process signs.
      while (read + BACKLOG_PART < upTo) {
        const last = addRecords(db, tree, { after: read, upTo, most: BACKLOG_PART })
        if (last === read) break
        read = last
        await endOfTurn()
      }
      await file.alone(() => {
        const last = file.last()?.seq ?? 0
        const segment = last === from ? segmentAfter(db, read, tree) : segmentAfter(db, last, createRecordTree())
        // A checkpoint must not be ahead of the disk.
        syncLog(path)
        file.append(segment, pruned)
      })
    },
    isPassing: isBusy,
    query: (query) => newestOf(rows, query),
    exportRecords: (query) => exportRows(rows, query),
    countOutcomes: async (query) => count(checkCountQuery(query)),
    *backwards() {
      for (const row of db.prepare('SELECT record FROM audit ORDER BY seq DESC').iterate()) yield toRecord(row)
    },
    ...removal,
    rotate: () => undefined,
    opened: () => lock?.share(),
    close() {
      removal.close()
      db.close()
      lock?.release()
    },
  }
}

/** The maximum number of records of a backlog that are read in one turn: about two milliseconds. */
const BACKLOG_PART = 1000

/** Returns a segment: the records of a tree, and the records after `after`. */
function segmentAfter(db: DatabaseSync, after: number, tree: RecordTree): Segment {
  const { seq, head: headHash } = endOf(db.prepare(NEWEST).get())
  addRecords(db, tree, { after, upTo: seq, most: -1 })
  return { seq, headHash, count: tree.size, merkleRoot: tree.root() }
}

/** Adds at most `most` records between two numbers, and returns the number of the last. `-1` adds all. */
function addRecords(
  db: DatabaseSync,
  tree: RecordTree,
  { after, upTo, most }: { readonly after: number; readonly upTo: number; readonly most: number },
): number {
  let last = after
  for (const row of db
    .prepare('SELECT seq, record FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?')
    .iterate(after, upTo, most)) {
    last = Number(row['seq'])
    const link = readLink(textIn(row, 'record'))
    if (link !== undefined) tree.add(link.hash)
  }
  return last
}

const NEWEST = 'SELECT seq, record FROM audit ORDER BY seq DESC LIMIT 1'

function endOf(row: Row | undefined): ChainEnd {
  const head = row === undefined ? undefined : readLink(textIn(row, 'record'))?.hash
  return { seq: Number(row?.['seq'] ?? 0), head: head ?? GENESIS }
}
