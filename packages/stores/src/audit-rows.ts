import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type AuditExportQuery, type AuditRecord } from '@toolgate/core'
import { type CheckedAuditQuery, checkAuditQuery, eventOfOutcome } from '@toolgate/core/audit'
import { AT_OF_RECORD, SESSION_OF_RECORD } from './audit-schema.ts'
import { numberOf } from './sqlite-file.ts'

type Row = Record<string, unknown>

/** Gives the records of a query, by number in the given direction. */
export type SelectRecords = (query: CheckedAuditQuery, direction: 'ASC' | 'DESC') => readonly AuditRecord[]

/** In JSON, the quotes of a field's name occur nowhere else. */
const HAS_ERROR = `instr(record, ',"error":"') > 0`

export function selectIn(db: DatabaseSync): SelectRecords {
  // A database that is only read may be of version 1.
  const isFirst = numberOf(db, 'PRAGMA user_version') === 1
  const columns = isFirst ? { session: SESSION_OF_RECORD, at: AT_OF_RECORD } : { session: 'session_id', at: 'at' }
  const statements = new Map<string, StatementSync>()

  return ({ limit, tool, user, session, event, outcome, call, since, until, beforeSeq, afterSeq }, direction) => {
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
    if (outcome === 'failed') filters.push(HAS_ERROR)
    if (outcome === 'done') filters.push(`NOT ${HAS_ERROR}`)
    addFilter("record ->> '$.tool_call_id' = ?", call)
    addFilter(`${columns.at} >= ?`, since)
    addFilter(`${columns.at} < ?`, until)
    addFilter('seq < ?', beforeSeq)
    addFilter('seq > ?', afterSeq)
    const where = filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''
    const sql = `SELECT record FROM audit ${where} ORDER BY seq ${direction} LIMIT ?`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement.all(...values, limit).map(toRecord)
  }
}

const EXPORT_PAGE = 500

/** Page by page, so that no transaction stays open for as long as the reader takes. */
export async function* exportRows(select: SelectRecords, query: AuditExportQuery): AsyncGenerator<AuditRecord> {
  let { afterSeq } = query
  for (;;) {
    const page = { ...query, limit: EXPORT_PAGE, ...(afterSeq === undefined ? {} : { afterSeq }) }
    const records = select(checkAuditQuery(page), 'ASC')
    yield* records
    if (records.length < EXPORT_PAGE) return
    afterSeq = records.at(-1)?.seq
  }
}

export function toRecord(row: Row): AuditRecord {
  return JSON.parse(row['record'] as string) as AuditRecord
}
