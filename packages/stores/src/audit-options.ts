import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { AuditCounter, AuditExporter, AuditReader, AuditSink, InputBoxes, SealOptions } from '@toolgate/core/audit'
import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { type AuditEvidence, checkpointsPath, inputKeyOf, secretAt } from './evidence.ts'

export interface AuditFileOptions extends SealOptions {
  readonly path: string
  /**
   * `batched`: a write returns at once. The entry is in the file within 100 ms, where it survives the end of the
   * process, and on the disk within another second, where it survives a power cut. `required`: a write resolves when
   * the entry is synced to the disk. Default `batched`.
   */
  readonly mode?: 'batched' | 'required'
  /** Opens the audit for reading only, beside a process that writes. Default `false`. */
  readonly readOnly?: boolean
  /**
   * The maximum number of entries that wait in memory while the disk fails. Further writes are refused. Default 10,000.
   */
  readonly maxWaiting?: number
  /** Signed checkpoints of the audit, stored in a second place. `false` for none. */
  readonly checkpoints?: CheckpointOptions | false
  /**
   * The shortest time that records are kept, in milliseconds. Older records are removed in whole groups that a
   * checkpoint has signed, so that the rest still verifies. Default: for ever.
   */
  readonly retainMs?: number
  /** When a file of JSON lines is closed and a new one begins. Default: each day if `retainMs` is set, else never. */
  readonly rotate?: RotationOptions
  /** The clock for the audit's own records. Default: the system's. */
  readonly nowMs?: () => number
  /** Called when a checkpoint cannot be written, or old records cannot be removed. Calls continue. */
  readonly onFault?: (error: unknown) => void
}

export interface CheckpointOptions {
  /**
   * The file of the checkpoints, each a line of JSON with a signed C2SP `tlog-checkpoint`. Default: `checkpoints/<name of the audit>.checkpoints` in the audit's
   * folder, or `<audit>.checkpoints` if an earlier version created it there. A file on another disk or host is safer.
   */
  readonly path?: string
  /**
   * An Ed25519 private key in PEM. Default: the key in `<path of the checkpoints>.key`, which is created at first use.
   */
  readonly key?: string
  /** The maximum number of records between checkpoints. Default 1,000. */
  readonly everyRecords?: number
  /**
   * The longest time between checkpoints, even without new records, so that a stopped audit is noticed. Default 60,000.
   */
  readonly everyMs?: number
  /**
   * The name of the log of checkpoints, without spaces and `+`. It is in each checkpoint and public key. Default: the name
   * that the log has, or that of the audit's file.
   */
  readonly writer?: string
}

export interface RotationOptions {
  /** Closes the file when it has this many bytes. */
  readonly bytes?: number
  /** Closes the file when its first record is this old. */
  readonly everyMs?: number
}

const OPTIONS = shapeOf<AuditFileOptions>({
  path: true,
  mode: true,
  readOnly: true,
  maxWaiting: true,
  checkpoints: true,
  retainMs: true,
  rotate: true,
  nowMs: true,
  onFault: true,
  redact: true,
  preview: true,
  inputs: true,
  inputKey: true,
})
const CHECKPOINTS = shapeOf<CheckpointOptions>({
  path: true,
  key: true,
  everyRecords: true,
  everyMs: true,
  writer: true,
})

const ROTATION = shapeOf<RotationOptions>({ bytes: true, everyMs: true })

/** @throws {ConfigError} naming an unknown option and the nearest known one */
export function checkAuditFileOptions(opener: string, options: AuditFileOptions): void {
  checkShape(opener, options, OPTIONS)
  const { checkpoints = {}, retainMs, rotate = {} } = options
  if (checkpoints !== false) checkShape(`${opener}.checkpoints`, checkpoints, CHECKPOINTS)
  checkShape(`${opener}.rotate`, rotate, ROTATION)
  for (const [name, value] of Object.entries({ retainMs, ...rotate }))
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1))
      throw new ConfigError(name, 'must be a whole number, 1 or greater')
  if (retainMs !== undefined && checkpoints === false)
    throw new ConfigError('retainMs', 'needs checkpoints: without them, nobody could tell a removal from a deletion')
}

/** Returns the options for sealing entries. */
export function sealOptionsOf({ redact, preview, inputs, inputKey }: AuditFileOptions): SealOptions {
  return { redact, preview, inputs, inputKey }
}

/** Whether whole inputs are stored, sealed. */
export function sealsInputs({ inputs }: SealOptions): boolean {
  return typeof inputs === 'object'
}

/** Returns how long sealed inputs are kept, in milliseconds. `undefined`: as long as their records. */
export function keepInputsMs({ inputs }: SealOptions): number | undefined {
  return typeof inputs === 'object' ? inputs.keepForMs : undefined
}

const DAY_MS = 86_400_000

/** Returns when files are closed. Retention removes only closed files, so it needs rotation. */
export function rotationOf({ rotate, retainMs }: AuditFileOptions): RotationOptions {
  return rotate ?? (retainMs === undefined ? {} : { everyMs: Math.min(DAY_MS, retainMs) })
}

/** An audit in a file. */
export interface FileAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter, InputBoxes {
  /** Returns the current state of the checkpoints. */
  evidence(): AuditEvidence
  /**
   * Removes now, rather than at the hourly round, everything older than `retainMs` and `inputs.keepForMs`.
   * @throws if records cannot be removed
   */
  prune(): Promise<void>
  /**
   * Closes a file of JSON lines now and begins a new one. Returns the path of the closed file, or `undefined` if
   * nothing could be closed, as in SQLite.
   */
  rotate(): Promise<string | undefined>
  /**
   * Returns the keyed hash that replaces a text in `facts`, for `whatIf`. Absent if this process does not have the key.
   */
  hashText?: ((text: string) => string) | undefined
  /** The number of entries that were refused, or lost when the audit was closed on a failing disk. */
  readonly droppedCount: number
  /** Why the audit cannot record now, as of the last write. */
  readonly problem?: AuditFileProblem | undefined
}

/** A message for people, as a clause rather than a sentence. */
export interface AuditFileProblem {
  readonly code: 'disk'
  /** A clause for people. */
  readonly message: string
}

const KEY_BYTES = 32

/**
 * Adds the key for hashes of inputs to the options. It is created at first use, even without checkpoints. A read-only
 * audit creates none.
 */
export function withInputKey(options: AuditFileOptions): AuditFileOptions {
  if (options.inputKey !== undefined) return options
  const file = inputKeyOf(checkpointsPath(options.path, options.checkpoints || {}))
  if (options.readOnly && !existsSync(file)) return options
  const key = Buffer.from(secretAt(file, () => `${randomBytes(KEY_BYTES).toString('hex')}\n`).trim(), 'hex')
  if (key.length !== KEY_BYTES) throw new Error(`the key of inputs ${file} does not have ${KEY_BYTES} bytes in hex`)
  return { ...options, inputKey: key }
}
