import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import {
  type AuditCountQuery,
  type AuditCounts,
  type AuditExportQuery,
  type AuditQuery,
  type AuditRecord,
  checkAuditQuery,
  type CheckedAuditQuery,
  createOutcomeTally,
  eventOfOutcome,
  outcomeOfRecord,
} from '@toolgate/core/audit'
import { parseRecord } from '@toolgate/core/internal'
import { fieldText, type Row, textIn } from './rows.ts'
import type { Schema } from './schema.ts'
import { numberOf } from './sqlite-file.ts'

/** `TGAT`, which marks a database as a Toolgate audit. */
const APPLICATION_ID = 0x54474154
const SCHEMA_VERSION = 2

/**
 * The columns are the fields that queries filter by, `at` in milliseconds. `record` is the whole record in RFC 8785
 * form. It comes last, so that a scan need not read it. The only index is `seq`: another one would double the cost of
 * every call, and most queries want the newest records, which are found without. No query filters by `kind` or
 * `purpose`, which are in the record alone: a scan of a million records for a rare kind takes 0.8 s of CPU, and an
 * index would add 0.9 µs to each write.
 */
const TABLE = `
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    tool TEXT,
    user_id TEXT,
    session_id TEXT,
    at INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT;
`

/** The SQL that reads a field from the record, because version 1 has no column for it. */
const SESSION_OF_RECORD = "record ->> '$.session_id'"
const AT_OF_RECORD = "CAST(round(unixepoch(record ->> '$.ts', 'subsec') * 1000) AS INTEGER)"

const FROM_VERSION_1 = `
  ALTER TABLE audit RENAME TO audit_1;
  ${TABLE}
  INSERT INTO audit
    SELECT seq, event, tool, user_id, ${SESSION_OF_RECORD}, coalesce(${AT_OF_RECORD}, 0), record FROM audit_1;
  DROP TABLE audit_1;
`

export const AUDIT: Schema = {
  name: 'an audit',
  applicationId: APPLICATION_ID,
  version: SCHEMA_VERSION,
  tables: TABLE,
  upgrades: new Map([[1, FROM_VERSION_1]]),
}

/** The records of a database. */
export interface AuditRows {
  /** Returns the records of a query, sorted by number. */
  select(query: CheckedAuditQuery, direction: 'ASC' | 'DESC'): readonly AuditRecord[]
  /** Counts the records of a query by time, event and failure. */
  count(query: AuditCountQuery & AuditExportQuery): readonly RowCount[]
  /** Returns the earliest and the latest time of the records in a range, or `undefined` if it has none. */
  timesOf(part: RecordRange): RecordTimes | undefined
  oldestSeq(): number
  newestSeq(): number
}

/** A range of record numbers. Both ends are excluded. */
interface RecordRange {
  readonly afterSeq: number
  readonly beforeSeq: number
}

interface RecordTimes {
  readonly least: number
  readonly most: number
}

interface RowCount {
  /** The start of the bucket, in milliseconds since 1970. */
  readonly atMs: number
  readonly event: AuditRecord['event']
  readonly hasFailed: boolean
  readonly count: number
}

const HAS_TEXT = 'instr(record, ?) > 0'
/** SQL that finds a failed record. A quoted field name occurs nowhere else in JSON. */
const HAS_FAILED = `(instr(record, ',"error":"') > 0 OR instr(record, ',"is_error":true') > 0)`
/** SQL that reads the record only for events whose result may have failed. */
const RESULT_HAS_FAILED = `CASE event WHEN 'tool_result' THEN ${HAS_FAILED} ELSE 0 END`

export function rowsIn(db: DatabaseSync): AuditRows {
  // A database that is opened only for reading may still have version 1.
  const isFirst = numberOf(db, 'PRAGMA user_version') === 1
  const columns = isFirst ? { session: SESSION_OF_RECORD, at: AT_OF_RECORD } : { session: 'session_id', at: 'at' }
  const statements = new Map<string, StatementSync>()

  function prepare(sql: string): StatementSync {
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement
  }

  function toWhere(query: AuditExportQuery): { readonly where: string; readonly values: readonly SQLInputValue[] } {
    const { tool, user, session, tenant, event, outcome, call, run, since, until, beforeSeq, afterSeq } = query
    const filters: string[] = []
    const values: SQLInputValue[] = []
    const addFilter = (sql: string, value: string | number | undefined): void => {
      if (value === undefined) return
      filters.push(sql)
      values.push(value)
    }
    addFilter('tool = ?', tool)
    addFilter('user_id = ?', user)
    addFilter(`${columns.session} = ?`, session)
    addFilter('event = ?', event)
    addFilter('event = ?', outcome && eventOfOutcome(outcome))
    addFilter(`${columns.at} >= ?`, since)
    addFilter(`${columns.at} < ?`, until)
    addFilter('seq < ?', beforeSeq)
    addFilter('seq > ?', afterSeq)
    if (outcome === 'failed') filters.push(HAS_FAILED)
    if (outcome === 'done') filters.push(`NOT ${HAS_FAILED}`)
    addFilter(HAS_TEXT, call === undefined ? undefined : fieldText('tool_call_id', call))
    addFilter(HAS_TEXT, run === undefined ? undefined : fieldText('run_id', run))
    addFilter(HAS_TEXT, tenant === undefined ? undefined : fieldText('tenant', tenant))
    return { where: filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : '', values }
  }

  return {
    select({ limit, ...query }, direction) {
      const { where, values } = toWhere(query)
      const statement = prepare(`SELECT record FROM audit ${where} ORDER BY seq ${direction} LIMIT ?`)
      return statement.all(...values, limit).map(toRecord)
    },
    count(query) {
      const { since, bucketMs } = query
      const { where, values } = toWhere(query)
      const bucket = `CAST((${columns.at} - ?) / ? AS INTEGER)`
      const sql = `SELECT ${bucket}, event, ${RESULT_HAS_FAILED}, count(*) FROM audit ${where} GROUP BY 1, 2, 3`
      return prepare(sql)
        .all(since, bucketMs, ...values)
        .map((row) => toRowCount(row, query))
    },
    timesOf({ afterSeq, beforeSeq }) {
      const sql = `SELECT min(${columns.at}), max(${columns.at}) FROM audit WHERE seq > ? AND seq < ?`
      const [least, most] = Object.values(prepare(sql).get(afterSeq, beforeSeq) ?? {})
      return least === null || least === undefined ? undefined : { least: Number(least), most: Number(most) }
    },
    oldestSeq: () => Number(prepare('SELECT coalesce(min(seq), 0) AS seq FROM audit').get()?.['seq']),
    newestSeq: () => Number(prepare('SELECT coalesce(max(seq), 0) AS seq FROM audit').get()?.['seq']),
  }
}

function toRowCount(row: Row, { since, bucketMs }: AuditCountQuery): RowCount {
  const [bucket, event, hasFailed, count] = Object.values(row)
  return {
    atMs: since + Number(bucket) * bucketMs,
    event: event as AuditRecord['event'],
    hasFailed: hasFailed === 1,
    count: Number(count),
  }
}

/** The maximum number of records that one turn of the event loop reads, so that a large audit does not delay calls. */
const PART = 5_000

/**
 * Returns a function that counts part by part. It remembers the times of each full part, and skips parts outside the
 * asked period.
 */
export function countIn(rows: AuditRows, size = PART): (query: AuditCountQuery) => Promise<AuditCounts> {
  const times = new Map<number, RecordTimes | undefined>()

  function isBeside(part: RecordRange, newestSeq: number, { since, until }: AuditCountQuery): boolean {
    // Only a removal changes a full part, and it adds no new time.
    const isFull = part.afterSeq + size <= newestSeq
    const known = times.has(part.afterSeq) ? times.get(part.afterSeq) : rows.timesOf(part)
    if (isFull) times.set(part.afterSeq, known)
    return known === undefined || known.most < since || known.least >= until
  }

  return async (query) => {
    const tally = createOutcomeTally(query)
    const newestSeq = rows.newestSeq()
    const first = Math.floor(Math.max(0, rows.oldestSeq() - 1) / size) * size
    for (let afterSeq = first; afterSeq < newestSeq; afterSeq += size) {
      const part = { afterSeq, beforeSeq: Math.min(afterSeq + size, newestSeq) + 1 }
      const isKnown = times.has(afterSeq)
      if (isBeside(part, newestSeq, query)) {
        if (!isKnown) await endOfTurn()
        continue
      }
      for (const { atMs, event, hasFailed, count } of rows.count({ ...query, ...part })) {
        const outcome = outcomeOfRecord({ event, ...(hasFailed ? { is_error: true } : {}) })
        if (outcome !== undefined) tally.add(atMs, outcome, count)
      }
      await endOfTurn()
    }
    return tally.counts(newestSeq)
  }
}

/**
 * Returns the newest records of a query. A query with filters is answered part by part, because it may read all
 * records.
 */
export async function newestOf(rows: AuditRows, query: AuditQuery, size = PART): Promise<readonly AuditRecord[]> {
  const checked = checkAuditQuery(query)
  const { limit: _, beforeSeq: _before, afterSeq: _after, ...filters } = checked
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  return isFiltered ? newestInParts(rows, checked, size) : rows.select(checked, 'DESC')
}

async function newestInParts(rows: AuditRows, query: CheckedAuditQuery, size: number): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = []
  const leastSeq = Math.max(query.afterSeq ?? 0, rows.oldestSeq() - 1)
  let beforeSeq = Math.min(query.beforeSeq ?? Number.POSITIVE_INFINITY, rows.newestSeq() + 1)
  for (;;) {
    const afterSeq = Math.max(leastSeq, beforeSeq - 1 - size)
    found.push(...rows.select({ ...query, afterSeq, beforeSeq, limit: query.limit - found.length }, 'DESC'))
    if (found.length >= query.limit || afterSeq <= leastSeq) return found
    beforeSeq = afterSeq + 1
    await endOfTurn()
  }
}

const EXPORT_PAGE = 500

/** Reads page by page, so that no transaction stays open while a reader is slow. */
export async function* exportRows(rows: AuditRows, query: AuditExportQuery): AsyncGenerator<AuditRecord> {
  let { afterSeq } = query
  for (;;) {
    const page = { ...query, limit: EXPORT_PAGE, ...(afterSeq === undefined ? {} : { afterSeq }) }
    const records = rows.select(checkAuditQuery(page), 'ASC')
    yield* records
    if (records.length < EXPORT_PAGE) return
    afterSeq = records.at(-1)?.seq
    // A reader that never waits would otherwise block the event loop to the end of the audit.
    await endOfTurn()
  }
}

export function toRecord(row: Row): AuditRecord {
  const record = parseRecord(textIn(row, 'record'))
  if (record === undefined) throw new Error('a row does not hold a record')
  return record
}
