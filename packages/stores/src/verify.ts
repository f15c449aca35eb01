import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { ConfigError, ToolgateError } from '@toolgate/core'
import { checkShape, messageOf, shapeOf } from '@toolgate/values'
import {
  type AuditVerdict,
  type AuditVerifier,
  createVerifier,
  parseCheckpoint,
  proveRecord,
  readLink,
  readSeq,
  type RecordProof,
  type VerifyingKey,
} from '@toolgate/core/audit'
import { AUDIT } from './audit-rows.ts'
import { InputBoxes, openBoxes } from './input-boxes.ts'
import { parsePublicKeys, publicKeysOf } from './checkpoint-file.ts'
import { checkpointsPath } from './evidence.ts'
import { closedFiles, viewAt } from './jsonl/log-files.ts'
import { linesForwards } from './lines.ts'
import { numberIn, type Row, textIn } from './rows.ts'
import { checkSchema } from './schema.ts'
import { numberOf } from './sqlite-file.ts'

export interface VerifyAuditOptions {
  /** The path of an audit in SQLite or JSON lines. Its first bytes show the format. */
  readonly path: string
  /** The path of the checkpoints. Default: see {@link checkpointsPath}. */
  readonly checkpoints?: string | undefined
  /**
   * Whether the audit must have checkpoints: without any it is `unsigned`. Default: `true` if `checkpoints` is given,
   * or the audit mentions checkpoints.
   */
  readonly mustBeSigned?: boolean | undefined
  /**
   * The trusted public keys in PEM. Default: the keys beside the checkpoints, which anyone who can change the
   * checkpoints can change too.
   */
  readonly publicKeys?: string | undefined
  /** The maximum number of findings that are returned. All are counted. */
  readonly maxFindings?: number | undefined
}

export {
  type AuditEvidence,
  checkpointsPath,
  type EvidenceProblem,
  type EvidenceProblemCode,
  findPlaceProblems,
} from './evidence.ts'

export { exportSharedAudit, openExportedAudit } from './shared-audit/folder.ts'
export { readNotes } from './shared-audit/note-file.ts'
export { proveGrowth, type SharedProofs, proveSharedRecords } from './shared-audit/prove.ts'
export type { SharedAuditSource, SoughtRecords } from './shared-audit/source.ts'
export { type SharedVerdict, verifySharedAudit } from './shared-audit/verify.ts'

export { findFileProblem } from './store-file.ts'

const OPTIONS = shapeOf<VerifyAuditOptions>({
  path: true,
  checkpoints: true,
  publicKeys: true,
  mustBeSigned: true,
  maxFindings: true,
})

/**
 * Verifies an audit against its chain and its checkpoints, even while it is being written.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be read, `audit_invalid` for a file that is not an
 * audit
 * @throws {ConfigError} for a key that cannot be used
 */
export async function verifyAudit(options: VerifyAuditOptions): Promise<AuditVerdict> {
  checkShape('verifyAudit', options, OPTIONS)
  const verdict = await verifyOnce(options)
  // The audit may mention checkpoints that were created after the checkpoints were read, and inputs may be removed
  // meanwhile.
  const mayPass = verdict.status === 'unsigned' || (verdict.inputs?.missing ?? 0) > 0
  return mayPass ? verifyOnce(options) : verdict
}

async function verifyOnce(options: VerifyAuditOptions): Promise<AuditVerdict> {
  const { maxFindings } = options
  return withFile(options.path, async (audit) => {
    const place = openCheckpoints(options)
    try {
      const keys = place && trustedKeys(place.path, options)
      // The checkpoints are read before the records, because a newer checkpoint would be ahead of them.
      const checkpoints = keys === undefined ? [] : place?.lines()
      const missing = missingText(options, { place, keys })
      const verifier = createVerifier({ checkpoints, keys, missing, maxFindings })
      const verdict = verifier.finish({ torn: await audit.feed(verifier) })
      if (isForeign(verdict, audit)) throw notAnAudit(options.path)
      return verdict
    } finally {
      place?.close()
    }
  })
}

/** Whether a file is not an audit: no line is a record, and it has no checkpoint. */
function isForeign({ records, lastSeq, checkpoints }: AuditVerdict, { beginsAsAudit }: RawAudit): boolean {
  return (records > 0 || !beginsAsAudit) && lastSeq === 0 && checkpoints.count === 0
}

function notAnAudit(path: string): ToolgateError {
  return new ToolgateError('audit_invalid', `The file ${path} is not an audit.`)
}

/** Returns the text of the finding that an audit lacks required checkpoints. */
function missingText(
  options: VerifyAuditOptions,
  { place, keys }: { place: CheckpointPlace | undefined; keys: readonly VerifyingKey[] | undefined },
): string | undefined {
  const { mustBeSigned = options.checkpoints !== undefined } = options
  if (place !== undefined && keys === undefined)
    return `The public keys ${publicKeysOf(place.path)} are missing, so the checkpoints cannot be checked.`
  if (!mustBeSigned) return undefined
  return place === undefined
    ? `The checkpoints ${checkpointsFile(options)} are missing.`
    : `There is no checkpoint in ${place.path}.`
}

/**
 * Returns the proofs of those records of a call that a checkpoint has signed, and the number of unsigned ones.
 *
 * @throws {ToolgateError} as {@link verifyAudit}
 */
export async function proveCall(
  callId: string,
  options: VerifyAuditOptions,
): Promise<{ proofs: readonly RecordProof[]; unsigned: number }> {
  checkShape('proveCall', options, OPTIONS)
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

/** An audit of any format, for verification and proofs. */
interface RawAudit {
  /** Whether the file is empty or begins like an audit. */
  readonly beginsAsAudit: boolean
  /** Passes every record to the verifier. Returns whether the last line is incomplete. */
  feed(verifier: AuditVerifier): Promise<boolean>
  recordsOf(callId: string): readonly string[]
  /** Returns the hashes of the records after `after`, up to `upTo`. */
  hashes(after: number, upTo: number): readonly string[]
  close(): void
}

const SQLITE_MAGIC = 'SQLite format 3\0'

async function withFile<T>(path: string, use: (audit: RawAudit) => Promise<T>): Promise<T> {
  let audit: RawAudit | undefined
  try {
    const first = firstBytes(closedFiles(path)[0]?.path ?? path)
    audit = first === SQLITE_MAGIC ? openRows(path) : openLines(path, first)
    return await use(audit)
  } catch (error) {
    if (error instanceof ToolgateError) throw error
    throw new ToolgateError('audit_unavailable', `The audit ${path} cannot be read: ${messageOf(error)}.`, {
      cause: error,
    })
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

function openLines(path: string, first: string): RawAudit {
  /** Yields the current lines. Call it after reading the checkpoints, which are then never ahead. */
  function* linesNow(): Generator<readonly string[], boolean> {
    const view = viewAt(path)
    try {
      return yield* view.forwards()
    } finally {
      view.close()
    }
  }

  function* texts(): Generator<string> {
    for (const lines of linesNow()) yield* lines
  }

  return {
    beginsAsAudit: first === '' || first.startsWith('{'),
    async feed(verifier) {
      const groups = linesNow()
      const boxes = openBoxes(path, { mayWrite: false, make: false })
      try {
        for (;;) {
          const group = groups.next()
          if (group.done === true) return group.value
          for (const line of group.value) verifier.add(line, boxOf(boxes, line))
          await endOfTurn()
        }
      } finally {
        boxes?.close()
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
    close: () => {},
  }
}

/** Returns the sealed input of a record. A quoted field name occurs nowhere else in JSON. */
function boxOf(boxes: InputBoxes | undefined, text: string): string | null | undefined {
  return text.includes(',"input_box":"') ? (boxes?.get(readSeq(text)) ?? null) : undefined
}

const PAGE = 1000
/** The start of all row numbers. A tampered row may have a number below 0. */
const BEFORE_ALL = Number.MIN_SAFE_INTEGER

function openRows(path: string): RawAudit {
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
    async feed(verifier) {
      // One transaction reads one consistent state.
      db.exec('BEGIN')
      const boxes = new InputBoxes(db, { mayWrite: false })
      const page = db.prepare('SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?')
      for (let after = BEFORE_ALL; ;) {
        const rows = page.all(after, PAGE)
        for (const row of rows) feedRow(verifier, row, { hasSession, boxes })
        if (rows.length < PAGE) break
        after = numberIn(rows.at(-1) ?? {}, 'seq')
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

function feedRow(
  verifier: AuditVerifier,
  row: Row,
  { hasSession, boxes }: { readonly hasSession: boolean; readonly boxes: InputBoxes },
): void {
  const text = textIn(row, 'record')
  verifier.add(text, boxOf(boxes, text))
  const column = otherColumn(row, text, hasSession)
  if (column !== undefined)
    verifier.report(`The column ${column} of row ${Number(row['seq'])} is not what its record says.`)
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

interface CheckpointPlace {
  readonly path: string
  /** Yields the current checkpoints. */
  lines(): Iterable<string>
  close(): void
}

function checkpointsFile({ path, checkpoints }: VerifyAuditOptions): string {
  return checkpointsPath(path, checkpoints === undefined ? {} : { path: checkpoints })
}

function openCheckpoints(options: VerifyAuditOptions): CheckpointPlace | undefined {
  const path = checkpointsFile(options)
  if (!existsSync(path)) return undefined
  const fd = openSync(path, 'r')
  const { size } = fstatSync(fd)
  return {
    path,
    *lines() {
      for (const lines of linesForwards(fd, size)) yield* lines
    },
    close: () => closeSync(fd),
  }
}

/** Returns the trusted keys, or `undefined` if none are given and the file beside the checkpoints is missing. */
function trustedKeys(checkpoints: string, { publicKeys }: VerifyAuditOptions): readonly VerifyingKey[] | undefined {
  const file = publicKeysOf(checkpoints)
  if (publicKeys === undefined && !existsSync(file)) return undefined
  const keys = parsePublicKeys(publicKeys ?? readFileSync(file, 'utf8'))
  if (keys.length === 0) throw new ConfigError('', 'there is no public key in PEM to verify checkpoints with')
  return keys
}
