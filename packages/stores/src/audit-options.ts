import { randomBytes } from 'node:crypto'
import type { AuditCounter, AuditExporter, AuditReader, AuditSink, SealOptions } from '@toolgate/core/audit'
import { checkShape, shapeOf } from '@toolgate/core/internal'
import { type AuditEvidence, checkpointsPath, inputKeyOf, secretAt } from './evidence.ts'

export interface AuditFileOptions extends SealOptions {
  readonly path: string
  /**
   * `batched`: a write returns at once, and the entry is in the file within 100 ms (it survives the end of
   * the process) and on the disk within a second more (it survives the end of the machine).
   * `required`: a write resolves when the entry is on the disk.
   * Default `batched`.
   */
  readonly mode?: 'batched' | 'required'
  /** Only reads, beside a process that writes. */
  readonly readOnly?: boolean
  /** How many entries wait in memory while the disk fails, before writes are refused. Default 10,000. */
  readonly maxWaiting?: number
  /** Signed checkpoints of the audit, in a second place. `false` for none. */
  readonly checkpoints?: CheckpointOptions | false
  /** Time of the records that the audit writes of itself. Default: the system's. */
  readonly nowMs?: () => number
  /** Hears of checkpoints that cannot be written: they do not keep calls from going on. */
  readonly onFault?: (error: unknown) => void
}

export interface CheckpointOptions {
  /**
   * A file of JSON lines. Default: `checkpoints/<name of the audit>.checkpoints` in the audit's folder, or
   * `<audit>.checkpoints` where an earlier version left it. Better on another disk, or a file that is shipped.
   */
  readonly path?: string
  /** An Ed25519 private key in PEM. Default: `<path of the checkpoints>.key`, which is made at first use. */
  readonly key?: string
  /** Default 1,000. */
  readonly everyRecords?: number
  /** Also while nothing happens, so that silence shows. Default 60,000. */
  readonly everyMs?: number
  /** Names the audit, for a place where checkpoints of several are collected. Default: the name of its file. */
  readonly writer?: string
}

const OPTIONS = shapeOf<AuditFileOptions>({
  path: true,
  mode: true,
  readOnly: true,
  maxWaiting: true,
  checkpoints: true,
  nowMs: true,
  onFault: true,
  redact: true,
  preview: true,
  inputKey: true,
})
const CHECKPOINTS = shapeOf<CheckpointOptions>({
  path: true,
  key: true,
  everyRecords: true,
  everyMs: true,
  writer: true,
})

/** @throws {ConfigError} naming an unknown option and the nearest known one */
export function checkAuditFileOptions(opener: string, options: AuditFileOptions): void {
  checkShape(opener, options, OPTIONS)
  const { checkpoints = false } = options
  if (checkpoints !== false) checkShape(`${opener}.checkpoints`, checkpoints, CHECKPOINTS)
}

/** Returns the options that say how a record is made of an entry. */
export function sealOptionsOf({ redact, preview, inputKey }: AuditFileOptions): SealOptions {
  return { redact, preview, inputKey }
}

/** An audit in a file. */
export interface FileAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter {
  /** What vouches for the audit, as it is now. */
  evidence(): AuditEvidence
  /** Entries whose write was refused, or which were lost when it was closed on a failing disk. */
  readonly droppedCount: number
}

const KEY_BYTES = 32

/** Returns the options of an audit with the key of its inputs, which is made at first use, also where no checkpoints are made. */
export function withInputKey(options: AuditFileOptions): AuditFileOptions {
  if (options.readOnly || options.inputKey !== undefined) return options
  const file = inputKeyOf(checkpointsPath(options.path, options.checkpoints || {}))
  const key = Buffer.from(secretAt(file, () => `${randomBytes(KEY_BYTES).toString('hex')}\n`).trim(), 'hex')
  if (key.length !== KEY_BYTES) throw new Error(`the key of inputs ${file} does not have ${KEY_BYTES} bytes in hex`)
  return { ...options, inputKey: key }
}
