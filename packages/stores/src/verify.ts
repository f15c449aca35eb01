import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { ConfigError, ToolgateError } from '@toolgate/core'
import {
  type AuditVerdict,
  type AuditVerifier,
  createVerifier,
  parseCheckpoint,
  proveRecord,
  readLink,
  type RecordProof,
  type VerifyingKey,
} from '@toolgate/core/audit'
import { checkKind, APPLICATION_ID } from './audit-schema.ts'
import { checkpointsBeside, parsePublicKeys, publicKeysOf } from './checkpoint-file.ts'
import { linesForwards } from './lines-forwards.ts'
import { numberOf } from './sqlite-file.ts'

export interface VerifyAuditOptions {
  /** An audit, SQLite or JSON lines, as its first bytes say. */
  readonly path: string
  /** Default: `<path>.checkpoints`, if it is there. */
  readonly checkpoints?: string | undefined
  /** The public keys that are trusted, in PEM. Default: those beside the checkpoints, which who can change these can change too. */
  readonly publicKeys?: string | undefined
  /** How many findings are kept; all are counted. */
  readonly maxFindings?: number | undefined
}

/**
 * Verifies an audit against its chain and its checkpoints, also while it is being written.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be read or is no audit
 * @throws {ConfigError} for a key that cannot be used
 */
export async function verifyAudit(options: VerifyAuditOptions): Promise<AuditVerdict> {
  return withFile(options.path, async (audit) => {
    const place = openCheckpoints(options)
    try {
      // Read before the records: one that is signed meanwhile would be ahead of what is read.
      const checkpoints = place?.lines() ?? []
      const verifier = createVerifier({ checkpoints, keys: place?.keys, maxFindings: options.maxFindings })
      return verifier.finish({ torn: await audit.feed(verifier) })
    } finally {
      place?.close()
    }
  })
}

/**
 * Gives the proof of each record of a call that a checkpoint has signed, and how many are not signed yet.
 *
 * @throws {ToolgateError} as {@link verifyAudit}
 */
export async function proveCall(
  callId: string,
  options: VerifyAuditOptions,
): Promise<{ proofs: readonly RecordProof[]; unsigned: number }> {
  return withFile(options.path, async (audit) => {
    const records = audit.recordsOf(callId)
    const place = openCheckpoints(options)
    try {
      const proofs: RecordProof[] = []
      const waiting = new Set(records.filter((record) => readLink(record) !== undefined))
      for (const line of place?.lines() ?? []) {
        const checkpoint = parseCheckpoint(line)
        if (checkpoint === undefined) continue
        const { seq, count } = checkpoint
        for (const record of waiting) {
          const at = readLink(record)?.seq ?? 0
          if (at > seq || at <= seq - count) continue
          proofs.push(proveRecord(record, line, audit.hashes(seq - count, seq)))
          waiting.delete(record)
        }
      }
      return { proofs, unsigned: waiting.size }
    } finally {
      place?.close()
    }
  })
}

/** What verifying and proving ask of an audit of any format. */
interface RawAudit {
  /** Gives the verifier every record. Resolves to whether the last line has no end. */
  feed(verifier: AuditVerifier): Promise<boolean>
  recordsOf(callId: string): readonly string[]
  /** Hashes of the records after one number and up to another. */
  hashes(after: number, upTo: number): readonly string[]
  close(): void
}

const SQLITE_MAGIC = 'SQLite format 3\0'

async function withFile<T>(path: string, use: (audit: RawAudit) => Promise<T>): Promise<T> {
  let audit: RawAudit | undefined
  try {
    audit = firstBytes(path) === SQLITE_MAGIC ? openRows(path) : openLines(path)
    return await use(audit)
  } catch (error) {
    if (error instanceof ToolgateError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new ToolgateError('audit_unavailable', `The audit ${path} cannot be read: ${why}.`, { cause: error })
  } finally {
    audit?.close()
  }
}

function firstBytes(path: string): string {
  const fd = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(SQLITE_MAGIC.length)
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(fd)
  }
}

function openLines(path: string): RawAudit {
  const fd = openSync(path, 'r')
  /** As far as it is written now: asked after the checkpoints, which are never ahead. */
  const linesNow = () => linesForwards(fd, fstatSync(fd).size)

  function* texts(): Generator<string> {
    for (const lines of linesNow()) yield* lines
  }

  return {
    async feed(verifier) {
      const groups = linesNow()
      for (;;) {
        const group = groups.next()
        if (group.done === true) return group.value
        for (const line of group.value) verifier.add(line)
        await endOfTurn()
      }
    },
    recordsOf: (callId) => {
      const needle = `"tool_call_id":${JSON.stringify(callId)}`
      return texts()
        .filter((text) => text.includes(needle))
        .toArray()
    },
    hashes: (after, upTo) =>
      texts()
        .map((text) => readLink(text))
        .filter((link) => link !== undefined && link.seq > after && link.seq <= upTo)
        .map((link) => link?.hash ?? '')
        .toArray(),
    close: () => closeSync(fd),
  }
}

const PAGE = 1000
/** Somebody may have given a row a number below 0. */
const BEFORE_ALL = Number.MIN_SAFE_INTEGER

function openRows(path: string): RawAudit {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    checkKind(db, [APPLICATION_ID])
  } catch (error) {
    db.close()
    throw error
  }
  const hasSession = numberOf(db, 'PRAGMA user_version') >= 2
  const textsWhere = (where: string, ...values: (string | number)[]): readonly string[] =>
    db
      .prepare(`SELECT record FROM audit WHERE ${where} ORDER BY seq`)
      .all(...values)
      .map((row) => row['record'] as string)

  return {
    async feed(verifier) {
      // One transaction, so that all rows are of one moment.
      db.exec('BEGIN')
      const page = db.prepare('SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?')
      for (let after = BEFORE_ALL; ;) {
        const rows = page.all(after, PAGE)
        for (const row of rows) feedRow(verifier, row, hasSession)
        if (rows.length < PAGE) break
        after = rows.at(-1)?.['seq'] as number
        await endOfTurn()
      }
      return false
    },
    recordsOf: (callId) => textsWhere("record ->> '$.tool_call_id' = ?", callId),
    hashes: (after, upTo) =>
      textsWhere('seq > ? AND seq <= ?', after, upTo)
        .map((text) => readLink(text)?.hash)
        .filter((hash) => hash !== undefined),
    close: () => db.close(),
  }
}

function feedRow(verifier: AuditVerifier, row: Record<string, unknown>, hasSession: boolean): void {
  const text = row['record'] as string
  verifier.add(text)
  const column = otherColumn(row, text, hasSession)
  if (column !== undefined)
    verifier.report(`The column ${column} of row ${Number(row['seq'])} is not what its record says.`)
}

/** Queries go by the columns: one that was changed would hide a record. */
function otherColumn(row: Record<string, unknown>, text: string, hasSession: boolean): string | undefined {
  if (!text.includes(`,"seq":${Number(row['seq'])},`)) return 'seq'
  if (!text.includes(`"event":${JSON.stringify(row['event'])}`)) return 'event'
  if (!says(text, 'tool', row['tool'])) return 'tool'
  if (!says(text, 'user_id', row['user_id'])) return 'user_id'
  if (!hasSession) return undefined
  if (!says(text, 'session_id', row['session_id'])) return 'session_id'
  const at = text.indexOf(',"ts":"') + ',"ts":"'.length
  return Date.parse(text.slice(at, text.indexOf('"', at))) === row['at'] ? undefined : 'at'
}

/** In JSON, the quotes of a field's name occur nowhere else. */
function says(text: string, field: string, value: unknown): boolean {
  return value === null ? !text.includes(`,"${field}":`) : text.includes(`,"${field}":${JSON.stringify(value)}`)
}

interface CheckpointPlace {
  readonly keys: readonly VerifyingKey[]
  /** As they are now. */
  lines(): Iterable<string>
  close(): void
}

function openCheckpoints({ path, checkpoints, publicKeys }: VerifyAuditOptions): CheckpointPlace | undefined {
  const file = resolve(checkpoints ?? checkpointsBeside(path))
  if (checkpoints === undefined && !existsSync(file)) return undefined
  const keys = parsePublicKeys(publicKeys ?? readFileSync(publicKeysOf(file), 'utf8'))
  if (keys.length === 0) throw new ConfigError('', 'there is no public key in PEM to verify checkpoints with')
  const fd = openSync(file, 'r')
  const { size } = fstatSync(fd)
  return {
    keys,
    *lines() {
      for (const lines of linesForwards(fd, size)) yield* lines
    },
    close: () => closeSync(fd),
  }
}
