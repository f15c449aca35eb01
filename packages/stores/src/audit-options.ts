import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { AuditCounter, AuditExporter, AuditReader, AuditSink, InputBoxes, SealOptions } from '@toolgate/core/audit'
import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { type AuditEvidence, checkpointsPath, inputKeyOf, secretAt } from './evidence.ts'

export interface AuditFileOptions extends SealOptions {
  readonly path: string
  /**
   * `batched`: a write returns at once. The entry is in the file within 100 ms, where it survives the end of the process,
   * and on the disk within another second, where it survives a power cut.
   * `required`: a write resolves when the entry is on the disk.
   * Default `batched`.
   */
  readonly mode?: 'batched' | 'required'
  /** Only reads, beside a process that writes. */
  readonly readOnly?: boolean
  /** How many entries may wait in memory while the disk fails. Then writes are refused. Default 10,000. */
  readonly maxWaiting?: number
  /** Signed checkpoints of the audit, in a second place. `false` for none. */
  readonly checkpoints?: CheckpointOptions | false
  /**
   * How long records are kept at least. Older ones are removed, in whole groups that a checkpoint has signed, so that the others
   * still verify. Default: for ever.
   */
  readonly retainMs?: number
  /** When a file of JSON lines is closed and another begun. Default with `retainMs`: each day; else never. */
  readonly rotate?: RotationOptions
  /** The clock for the audit's own records. Default: the system's. */
  readonly nowMs?: () => number
  /** Called when a checkpoint cannot be written, or old records cannot be removed. Calls continue. */
  readonly onFault?: (error: unknown) => void
}

export interface CheckpointOptions {
  /**
   * A file of JSON lines. Default: `checkpoints/<name of the audit>.checkpoints` in the audit's folder, or
   * `<audit>.checkpoints` if an earlier version made it there. Better: a file on another disk or host.
   */
  readonly path?: string
  /** An Ed25519 private key in PEM. Default: the one in `<path of the checkpoints>.key`, which is made at first use. */
  readonly key?: string
  /** Default 1,000. */
  readonly everyRecords?: number
  /** Also without new records, so that a stopped audit shows. Default 60,000. */
  readonly everyMs?: number
  /** Names the audit, for a place where checkpoints of several are collected. Default: the name of its file. */
  readonly writer?: string
}

export interface RotationOptions {
  /** Once the file has so many bytes. */
  readonly bytes?: number
  /** Once its first record is so old. */
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

/** Whether whole inputs are kept, sealed. */
export function sealsInputs({ inputs }: SealOptions): boolean {
  return typeof inputs === 'object'
}

/** How long they are kept; `undefined` for as long as their records. */
export function keepInputsMs({ inputs }: SealOptions): number | undefined {
  return typeof inputs === 'object' ? inputs.keepForMs : undefined
}

const DAY_MS = 86_400_000

/** Returns when files are closed. Retention removes whole files, so it needs closed ones. */
export function rotationOf({ rotate, retainMs }: AuditFileOptions): RotationOptions {
  return rotate ?? (retainMs === undefined ? {} : { everyMs: Math.min(DAY_MS, retainMs) })
}

/** An audit in a file. */
export interface FileAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter, InputBoxes {
  /** Returns the state of the checkpoints now. */
  evidence(): AuditEvidence
  /** Removes now what `retainMs` and `inputs.keepForMs` no longer keep, which otherwise happens every hour. @throws if records cannot be removed */
  prune(): Promise<void>
  /**
   * Closes a file of JSON lines now and begins another. Returns the path of the closed one; `undefined` if there is nothing to
   * close, as in SQLite.
   */
  rotate(): Promise<string | undefined>
  /** Returns the keyed hash by which `facts` keep a text, for `whatIf`. Absent: this process does not have the key. */
  hashText?: ((text: string) => string) | undefined
  /** How many entries were refused, or lost when the audit was closed on a failing disk. */
  readonly droppedCount: number
  /** Why nothing can be recorded now, as the last write has shown. */
  readonly problem?: AuditFileProblem | undefined
}

/** A disk that takes no records. */
export interface AuditFileProblem {
  readonly code: 'disk'
  /** A clause for people. */
  readonly message: string
}

const KEY_BYTES = 32

/** Adds the key for hashes of inputs to the options. It is made at first use, also without checkpoints; who only reads makes none. */
export function withInputKey(options: AuditFileOptions): AuditFileOptions {
  if (options.inputKey !== undefined) return options
  const file = inputKeyOf(checkpointsPath(options.path, options.checkpoints || {}))
  if (options.readOnly && !existsSync(file)) return options
  const key = Buffer.from(secretAt(file, () => `${randomBytes(KEY_BYTES).toString('hex')}\n`).trim(), 'hex')
  if (key.length !== KEY_BYTES) throw new Error(`the key of inputs ${file} does not have ${KEY_BYTES} bytes in hex`)
  return { ...options, inputKey: key }
}
