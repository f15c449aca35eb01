import { setImmediate as endOfTurn } from 'node:timers/promises'
import {
  type AuditCountQuery,
  type AuditCounts,
  type AuditExportQuery,
  type AuditQuery,
  type AuditRecord,
  checkAuditQuery,
  checkCountQuery,
  createOutcomeTally,
  eventOfOutcome,
  matchesAuditQuery,
  outcomeOfRecord,
  readSeq,
} from '@toolgate/core/audit'
import { parseRecord } from '@toolgate/core/internal'
import { type LogView, viewAt } from './log-files.ts'

export function queryLines(view: LogView, query: AuditQuery): readonly AuditRecord[] {
  const checked = checkAuditQuery(query)
  const mayMatch = createMatch(checked)
  const found: AuditRecord[] = []
  for (const { text } of view.backwards(checked.beforeSeq)) {
    if (found.length >= checked.limit) break
    const record = mayMatch(text) ? parseRecord(text) : undefined
    if (record === undefined) continue
    if (checked.afterSeq !== undefined && record.seq <= checked.afterSeq) break
    if (matchesAuditQuery(record, checked)) found.push(record)
  }
  return found
}

/** Reads with its own descriptors, because the audit may be closed before the reader has finished. */
export async function* exportLines(
  path: string,
  query: AuditExportQuery,
  onUnreadable: (lines: number) => void = () => {},
): AsyncGenerator<AuditRecord> {
  const checked = checkAuditQuery(query)
  const mayMatch = createMatch(checked)
  const view = viewAt(path)
  /** The number of unreadable lines since the last record. */
  let unreadable = 0
  try {
    for (const lines of view.forwards()) {
      for (const text of lines) {
        if (!mayMatch(text)) continue
        const record = parseRecord(text)
        if (record === undefined) {
          unreadable++
          continue
        }
        if (checked.beforeSeq !== undefined && record.seq >= checked.beforeSeq) return
        const isFound = matchesAuditQuery(record, checked)
        if (isFound && unreadable > 0) onUnreadable(unreadable)
        unreadable = 0
        if (isFound) yield record
      }
      await endOfTurn()
    }
    if (unreadable > 0) onUnreadable(unreadable)
  } finally {
    view.close()
  }
}

export async function countLines(path: string, query: AuditCountQuery): Promise<AuditCounts> {
  const checked = checkCountQuery(query)
  const tally = createOutcomeTally(checked)
  const mayMatch = createMatch(checked)
  const view = viewAt(path)
  let newestSeq = 0
  try {
    for (const lines of view.forwards()) {
      for (const text of lines) {
        const atMs = readTime(text)
        if (!(atMs >= checked.since && atMs < checked.until)) continue
        const record = mayMatch(text) ? parseRecord(text) : undefined
        if (record === undefined || !matchesAuditQuery(record, checked)) continue
        const outcome = outcomeOfRecord(record)
        if (outcome !== undefined) tally.add(atMs, outcome)
      }
      newestSeq = readSeq(lines.at(-1) ?? '') || newestSeq
      await endOfTurn()
    }
  } finally {
    view.close()
  }
  return tally.counts(newestSeq)
}

const TIME_FIELD = ',"ts":"'

/** Reads the time of a record from its text, or NaN if it has none. This is much faster than parsing the record. */
export function readTime(text: string): number {
  const start = text.indexOf(TIME_FIELD) + TIME_FIELD.length
  return start < TIME_FIELD.length ? Number.NaN : Date.parse(text.slice(start, text.indexOf('"', start)))
}

export function* recordsBackwards(view: LogView): Generator<AuditRecord> {
  for (const { text } of view.backwards()) {
    const record = parseRecord(text)
    if (record !== undefined) yield record
  }
}

/** Returns a function that checks whether a line may match a query. It parses few lines. */
function createMatch({ tool, user, session, tenant, call, run, event, outcome }: AuditExportQuery) {
  const fields = { tool, user_id: user, session_id: session, tenant, tool_call_id: call, run_id: run, event }
  const needles = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => `"${field}":${JSON.stringify(value)}`)
  if (outcome !== undefined) needles.push(`"event":"${eventOfOutcome(outcome)}"`)
  return (text: string): boolean => needles.every((needle) => text.includes(needle))
}
