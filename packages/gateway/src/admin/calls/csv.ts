import type { CallRow } from '../../model/rows.ts'

const COLUMNS = [
  'started',
  'ended',
  'outcome',
  'tool',
  'user',
  'tenant',
  'run',
  'session',
  'reason',
  'detail',
  'error',
  'duration_ms',
  'call',
  'seq',
] as const

/** A text that begins like a formula. A spreadsheet would run it, and agents choose some of these texts. */
const FORMULA = /^[=+\-@\t\r]/

/** The header line of calls as CSV (RFC 4180). */
export const CSV_HEAD: string = toLine(COLUMNS)

/** Returns a call as a line of CSV. */
export function toCsv({ id, seq, outcome, startedAt, endedAt, records }: CallRow): string {
  const latest = records.at(-1)
  return toLine([
    startedAt,
    endedAt,
    outcome,
    latest?.tool,
    latest?.user_id,
    latest?.tenant,
    latest?.run_id,
    latest?.session_id,
    latest?.reason,
    latest?.detail,
    latest?.error,
    latest?.duration_ms,
    id,
    seq,
  ])
}

function toLine(cells: readonly (string | number | undefined)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`
}

function toCell(value: string | number | undefined = ''): string {
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
