import { closeSync, openSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import { readLink } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { AUDIT } from './audit-rows.ts'
import { boxesAt, StoredInputBoxes, openBoxes } from './input-boxes.ts'
import { closedFiles, viewAt } from './jsonl/log-files.ts'
import { numberIn, type Row, textIn } from './rows.ts'
import { checkSchema } from './schema.ts'
import type { AuditSource, KeptChain, KeptRecord, SoughtRecords } from './shared-audit/source.ts'
import { numberOf } from './sqlite-file.ts'

/** The only chain of an audit in a file. */
export const THE_CHAIN: KeptChain = { id: 1, seq: 0 }

/** The records of an audit in a file of any format. */
export interface FileRecords extends Pick<AuditSource, 'records' | 'boxes' | 'hashes' | 'find'> {
  /** Whether the file is empty or begins like an audit. */
  readonly beginsAsAudit: boolean
  /** Whether the last line is incomplete. Known when all records were read. */
  isTorn(): boolean
  close(): void
}

/**
 * Runs `use` with the records of a file.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be read, `audit_invalid` for a file that is not an
 * audit
 */
export async function withRecords<T>(path: string, use: (records: FileRecords) => Promise<T>): Promise<T> {
  let records: FileRecords | undefined
  try {
    const first = firstBytes(closedFiles(path)[0]?.path ?? path)
    records = first === SQLITE_MAGIC ? openRows(path) : openLines(path, first)
    return await use(records)
  } catch (error) {
    if (error instanceof ToolgateError) throw error
    throw new ToolgateError('audit_unavailable', `The audit ${path} cannot be read: ${messageOf(error)}.`, {
      cause: error,
    })
  } finally {
    records?.close()
  }
}

export function notAnAudit(path: string): ToolgateError {
  return new ToolgateError('audit_invalid', `The file ${path} is not an audit.`)
}

const SQLITE_MAGIC = 'SQLite format 3\0'

function firstBytes(path: string): string {
  const fd = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(SQLITE_MAGIC.length)
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(fd)
  }
}

function openLines(path: string, first: string): FileRecords {
  const boxes = openBoxes(path, { mayWrite: false, make: false })
  let torn = false

  /** Yields the current lines. Call it after reading the checkpoints, which are then never ahead. */
  function* linesNow(): Generator<readonly string[]> {
    const view = viewAt(path)
    try {
      torn = yield* view.forwards()
    } finally {
      view.close()
    }
  }

  return {
    beginsAsAudit: first === '' || first.startsWith('{'),
    isTorn: () => torn,
    async *records() {
      for (const lines of linesNow()) {
        yield lines.map((text) => ({ text }))
        await endOfTurn()
      }
    },
    boxes: async (_chain, seqs) => boxesAt(boxes, seqs),
    async *hashes(_chain, after, upTo) {
      for (const lines of linesNow()) yield lines.flatMap((text) => hashIn(text, after, upTo))
    },
    find: async (sought) =>
      linesNow()
        .flatMap((lines) => lines.filter((text) => isSought(text, sought)))
        .map((text) => ({ chain: THE_CHAIN, text }))
        .toArray(),
    close: () => boxes?.close(),
  }
}

function hashIn(text: string, after: number, upTo: number): readonly string[] {
  const link = readLink(text)
  return link !== undefined && link.seq > after && link.seq <= upTo ? [link.hash] : []
}

/** Whether a record is sought. Records without a chain cannot be proved. */
function isSought(text: string, sought: SoughtRecords): boolean {
  const isIt =
    'call' in sought
      ? text.includes(`"tool_call_id":${JSON.stringify(sought.call)}`)
      : text.includes(`,"seq":${sought.place},`)
  return isIt && readLink(text) !== undefined
}

const PAGE = 1000
/** The start of all row numbers. A tampered row may have a number below 0. */
const BEFORE_ALL = Number.MIN_SAFE_INTEGER

function openRows(path: string): FileRecords {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    if (numberOf(db, 'PRAGMA application_id') !== AUDIT.applicationId) throw notAnAudit(path)
    checkSchema(db, AUDIT, { mayBeNew: false })
  } catch (error) {
    db.close()
    throw error
  }
  const hasSession = numberOf(db, 'PRAGMA user_version') >= 2
  const textsWhere = (where: string, ...values: (string | number)[]): readonly string[] =>
    db
      .prepare(`SELECT record FROM audit WHERE ${where} ORDER BY seq`)
      .all(...values)
      .map((row) => textIn(row, 'record'))

  return {
    beginsAsAudit: true,
    isTorn: () => false,
    async *records() {
      // One transaction reads one consistent state.
      db.exec('BEGIN')
      const page = db.prepare('SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?')
      for (let after = BEFORE_ALL; ;) {
        const rows = page.all(after, PAGE)
        yield rows.map((row) => recordIn(row, hasSession))
        if (rows.length < PAGE) return
        after = numberIn(rows.at(-1) ?? {}, 'seq')
        await endOfTurn()
      }
    },
    boxes: async (_chain, seqs) => boxesAt(new StoredInputBoxes(db, { mayWrite: false }), seqs),
    async *hashes(_chain, after, upTo) {
      yield textsWhere('seq > ? AND seq <= ?', after, upTo).flatMap((text) => readLink(text)?.hash ?? [])
    },
    find: async (sought) =>
      ('call' in sought
        ? textsWhere("record ->> '$.tool_call_id' = ?", sought.call)
        : textsWhere('seq = ?', sought.place)
      )
        .filter((text) => readLink(text) !== undefined)
        .map((text) => ({ chain: THE_CHAIN, text })),
    close: () => db.close(),
  }
}

function recordIn(row: Row, hasSession: boolean): KeptRecord {
  const text = textIn(row, 'record')
  const column = otherColumn(row, text, hasSession)
  if (column === undefined) return { text }
  return { text, problem: `The column ${column} of row ${Number(row['seq'])} is not what its record says.` }
}

/**
 * Returns the name of a column that differs from its record. Queries use the columns, so a changed column would hide a
 * record.
 */
function otherColumn(row: Row, text: string, hasSession: boolean): string | undefined {
  if (!text.includes(`,"seq":${Number(row['seq'])},`)) return 'seq'
  if (!text.includes(`"event":${JSON.stringify(row['event'])}`)) return 'event'
  if (!says(text, 'tool', row['tool'])) return 'tool'
  if (!says(text, 'user_id', row['user_id'])) return 'user_id'
  if (!hasSession) return undefined
  if (!says(text, 'session_id', row['session_id'])) return 'session_id'
  const at = text.indexOf(',"ts":"') + ',"ts":"'.length
  return Date.parse(text.slice(at, text.indexOf('"', at))) === row['at'] ? undefined : 'at'
}

/** Whether a record's text has a field with this value. A quoted field name occurs nowhere else in JSON. */
function says(text: string, field: string, value: unknown): boolean {
  return value === null ? !text.includes(`,"${field}":`) : text.includes(`,"${field}":${JSON.stringify(value)}`)
}
