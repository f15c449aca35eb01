import { existsSync } from 'node:fs'
import { messageOf } from '@toolgate/values'
import type { SignedPoint } from '@toolgate/core/audit'
import type { AuditFile } from './audit-file.ts'
import type { AuditFileOptions } from './audit-options.ts'
import { type CheckpointFile, openCheckpointFile } from './checkpoint-file.ts'
import type { AuditEvidence, EvidenceProblem } from './evidence.ts'

const EVERY_RECORDS = 1000
const EVERY_MS = 60_000
const FIRST_MS = 1000

/** The checkpoints of an open audit. */
export interface Checkpoints {
  /** Compares the checkpoints with the last signed record that the audit names. */
  compareWith(claimedSeq: number): void
  /** Starts to create checkpoints. Before each one, `sync` makes the sink write its records to the disk. */
  start(sync: () => Promise<void>): void
  /** Counts stored records. */
  stored(count: number): void
  /** Signs all records. With `pruned` it also signs that records up to this point may be removed. @throws if it fails */
  sign(pruned?: SignedPoint): Promise<void>
  /** The file of the checkpoints. Absent if there are none. */
  readonly place?: CheckpointFile
  evidence(): AuditEvidence
  /** Creates the last checkpoint. */
  close(): Promise<void>
}

/** Opens the checkpoints that the options describe. */
export function openCheckpoints(file: AuditFile, options: AuditFileOptions, nowMs: () => number): Checkpoints {
  return options.checkpoints === false ? NO_CHECKPOINTS : new SignedCheckpoints(file, options, nowMs)
}

const NO_CHECKPOINTS: Checkpoints = {
  compareWith: () => {},
  start: () => {},
  stored: () => {},
  sign: async () => {},
  evidence: () => ({ problems: [] }),
  close: async () => {},
}

/**
 * Creates a checkpoint after a number of records or after some time, whichever comes first. Only one runs at a time.
 */
class SignedCheckpoints implements Checkpoints {
  readonly #file: AuditFile
  readonly place: CheckpointFile
  readonly #everyRecords: number
  readonly #everyMs: number
  readonly #onFault: (error: unknown) => void
  #sync: (() => Promise<void>) | undefined
  #timer: NodeJS.Timeout | undefined
  #firstTimer: NodeJS.Timeout | undefined
  /** The number of records since the latest checkpoint. */
  #since = 0
  #running: Promise<void> | undefined
  /** The error of the latest checkpoint, if it failed. */
  #failure: unknown
  /** The last signed record that the audit names, if its checkpoint is missing. */
  #lostSeq = 0

  constructor(file: AuditFile, { checkpoints, onFault = () => {} }: AuditFileOptions, nowMs: () => number) {
    const options = checkpoints || {}
    this.#file = file
    this.place = openCheckpointFile({ ...options, auditPath: file.path, nowMs })
    this.#everyRecords = options.everyRecords ?? EVERY_RECORDS
    this.#everyMs = options.everyMs ?? EVERY_MS
    this.#onFault = onFault
  }

  compareWith(claimedSeq: number): void {
    if (claimedSeq <= (this.place.last()?.seq ?? 0)) return
    this.#lostSeq = claimedSeq
    this.#onFault(new Error(this.#missing()?.message))
  }

  start(sync: () => Promise<void>): void {
    this.#sync = sync
    this.#timer = setInterval(() => void this.#run(), this.#everyMs).unref()
    // This signs earlier records and the first new ones soon.
    this.#firstTimer = setTimeout(() => void this.#run(), Math.min(FIRST_MS, this.#everyMs)).unref()
  }

  stored(count: number): void {
    this.#since += count
    if (this.#since >= this.#everyRecords) void this.#run()
  }

  async sign(pruned?: SignedPoint): Promise<void> {
    while (this.#running !== undefined) await this.#running
    await this.#run(pruned)
    if (this.#failure !== undefined) throw this.#failure
  }

  evidence(): AuditEvidence {
    const last = this.place.last()
    const { path } = this.place
    return {
      checkpoints: { path, signedSeq: last?.seq ?? 0, ...(last === undefined ? {} : { signedAt: last.ts }) },
      problems: [this.#missing(), this.#failing()].filter((problem) => problem !== undefined),
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    clearTimeout(this.#firstTimer)
    await this.#running
    await this.#run()
    this.place.close()
  }

  #run(pruned?: SignedPoint): Promise<void> {
    this.#since = 0
    this.#running ??= this.#make(pruned).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Creates a checkpoint. Never rejects, because calls do not depend on checkpoints. */
  async #make(pruned: SignedPoint | undefined): Promise<void> {
    try {
      await this.#file.checkpoint(this.place, async () => this.#sync?.(), pruned)
      this.#failure = undefined
    } catch (error) {
      this.#failure = error
      this.#onFault(error)
    }
  }

  #missing(): EvidenceProblem | undefined {
    const { path } = this.place
    if (!existsSync(path))
      return { code: 'checkpoints_missing', message: `The checkpoints ${path} were removed while the audit was open.` }
    if (this.#lostSeq === 0) return undefined
    const message = `The audit says that checkpoints signed up to record ${this.#lostSeq}, and ${path} did not have them when it was opened. Put them back, or find out who removed them.`
    return { code: 'checkpoints_missing', message }
  }

  #failing(): EvidenceProblem | undefined {
    if (this.#failure === undefined) return undefined
    return { code: 'checkpoints_failing', message: `No checkpoint can be made: ${messageOf(this.#failure)}.` }
  }
}
