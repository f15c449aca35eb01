import { resolve } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type AuditQuery, type AuditRecord, checkAuditQuery } from '@toolgate/core'
import { type AuditFile, openError } from './audit-file.ts'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { openAudit } from './open-audit.ts'
import { createPrivately, isBusy, numberOf, OPEN_TIMEOUT_MS, retryWhileBusy } from './sqlite-file.ts'

export type { AuditFileOptions, FileAudit } from './audit-options.ts'
export { openSqliteStores, type SqliteStores, type SqliteStoresOptions } from './state/open-stores.ts'

/** `TGAT`, which tells our files from other databases. */
const APPLICATION_ID = 0x54474154
const SCHEMA_VERSION = 1

/**
 * The columns are what queries ask for; `record` is the whole record in RFC 8785 form, last, so that a
 * scan need not read it. There is no index but `seq`: one more would double the cost of every call, and
 * the newest records, which are asked for, are found without.
 */
const SCHEMA = `
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    tool TEXT,
    user_id TEXT,
    record TEXT NOT NULL
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`

/** Long enough for another process's commit, short enough for the event loop. */
const BUSY_TIMEOUT_MS = 50

/**
 * Opens an audit in an SQLite database, which several processes may write to.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be opened or is something else
 * @example
 * const audit = openSqliteAudit({ path: './toolgate.db', mode: 'required' })
 */
export function openSqliteAudit(options: AuditFileOptions): FileAudit {
  return openAudit(openDatabase({ ...options, path: resolve(options.path) }), options)
}

function openDatabase({ path, mode = 'batched', readOnly = false }: AuditFileOptions): AuditFile {
  let db: DatabaseSync | undefined
  try {
    if (!readOnly) createPrivately(path)
    db = new DatabaseSync(path, { readOnly, timeout: OPEN_TIMEOUT_MS })
    prepareDatabase(db, mode, readOnly)
    return auditIn(db, path, mode)
  } catch (error) {
    db?.close()
    throw openError(path, error)
  }
}

function prepareDatabase(db: DatabaseSync, mode: 'batched' | 'required', readOnly: boolean): void {
  if (!readOnly) {
    checkKind(db, [APPLICATION_ID, 0])
    retryWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
    db.exec(`PRAGMA synchronous = ${mode === 'required' ? 'FULL' : 'NORMAL'}`)
    db.exec('BEGIN IMMEDIATE')
    if (numberOf(db, 'PRAGMA user_version') === 0) db.exec(SCHEMA)
    db.exec('COMMIT')
  }
  checkKind(db, [APPLICATION_ID])
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
}

/** Nothing is written into somebody else's database, nor into one of a later version. */
function checkKind(db: DatabaseSync, applicationIds: readonly number[]): void {
  const id = numberOf(db, 'PRAGMA application_id')
  const isEmpty = numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0
  if (!applicationIds.includes(id) || (id === 0 && !isEmpty)) throw new Error('it is not an audit database')
  const version = numberOf(db, 'PRAGMA user_version')
  if (version > SCHEMA_VERSION) throw new Error(`it has version ${version}; this program knows ${SCHEMA_VERSION}`)
}

function auditIn(db: DatabaseSync, path: string, mode: 'batched' | 'required'): AuditFile {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const newest = db.prepare('SELECT max(seq) AS seq FROM audit')
  const insert = db.prepare('INSERT INTO audit VALUES (?, ?, ?, ?, ?)')
  const select = selectIn(db)

  return {
    path,
    append(records) {
      begin.run()
      try {
        // Read inside the transaction: another process may have written since.
        let seq = Number(newest.get()?.['seq'] ?? 0)
        for (const record of records) {
          record.seq = ++seq
          insert.run(seq, record.event, record.tool ?? null, record.user_id ?? null, JSON.stringify(record))
        }
        commit.run()
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
    async sync() {
      // A commit in `required` mode is synced by itself; a checkpoint syncs those of `batched` mode.
      if (mode === 'batched') db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    },
    isPassing: isBusy,
    query: (query) => select(query).map((row) => JSON.parse(row['record'] as string) as AuditRecord),
    close: () => db.close(),
  }
}

type Row = Record<string, unknown>

function selectIn(db: DatabaseSync): (query: AuditQuery) => readonly Row[] {
  const statements = new Map<string, StatementSync>()
  return (query) => {
    const { limit, tool, user, event, beforeSeq, afterSeq } = checkAuditQuery(query)
    const filters: string[] = []
    const values: SQLInputValue[] = []
    const addFilter = (sql: string, value: string | number | undefined): void => {
      if (value === undefined) return
      filters.push(sql)
      values.push(value)
    }
    addFilter('tool = ?', tool)
    addFilter('user_id = ?', user)
    addFilter('event = ?', event)
    addFilter('seq < ?', beforeSeq)
    addFilter('seq > ?', afterSeq)
    const where = filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''
    const sql = `SELECT record FROM audit ${where} ORDER BY seq DESC LIMIT ?`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement.all(...values, limit)
  }
}
