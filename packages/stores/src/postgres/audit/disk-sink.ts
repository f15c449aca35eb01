import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import type { AuditEntry, SealOptions } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import type { AuditFile } from '../../audit-file.ts'
import type { FileAudit } from '../../audit-options.ts'
import { openWriter } from '../../jsonl/writer.ts'
import { openAudit } from '../../open-audit.ts'
import { type AuditProblem, ProblemReport, unavailable } from './audit-problem.ts'
import type { ChainStore } from './chain-store.ts'
import { newChain } from './shared-sink.ts'
import { Shipper } from './shipper.ts'

interface DiskSinkParts {
  /** The folder on this disk. */
  readonly folder: string
  readonly incarnation: string
  readonly store: ChainStore
  readonly sealing: SealOptions
  readonly nowMs: () => number
  readonly maxWaiting: number
  readonly onProblem: (problem: AuditProblem | undefined) => void
}

/** A file is closed and another begun after so many bytes, and removed once the database has its records. */
const FILE_BYTES = 16_000_000
/** More records on this disk alone are refused: some 150 MB. */
const MAX_UNSHIPPED = 250_000
const PATIENCE_MS = 2000
/** Between parts of what is removed. */
const PAUSE_MS = 10

/**
 * A sink whose writes resolve when the record is on this disk. The records are shipped to the database in groups.
 *
 * Once a record has waited for the database for a second, calls are refused. How other calls have ended, and that calls were
 * refused, is kept on the disk and shipped later.
 */
export class DiskSink {
  readonly #path: string
  readonly #store: ChainStore
  readonly #file: AuditFile
  readonly #local: FileAudit
  readonly #shipper: Shipper
  readonly #report: ProblemReport
  /** The error of the disk, until it takes a record again. */
  #diskError: unknown
  #shippedSeq = 0
  #isRemoving = false
  #isClosed = false

  constructor({ folder, incarnation, store, sealing, nowMs, maxWaiting, onProblem }: DiskSinkParts) {
    this.#path = chainFile(folder, incarnation)
    this.#store = store
    this.#report = new ProblemReport(onProblem)
    const { sealer, tree } = newChain(sealing)
    this.#shipper = new Shipper({
      store,
      path: this.#path,
      end: { seq: sealer.seq, head: sealer.head },
      tree,
      onShipped: (seq) => this.#removeClosed(seq),
      onChange: () => this.#report.update(this.problem),
    })
    const options = {
      ...sealing,
      path: this.#path,
      mode: 'required',
      checkpoints: false,
      rotate: { bytes: FILE_BYTES },
      maxWaiting,
      nowMs,
    } as const
    this.#file = openWriter(this.#path, options, {
      onAppend: () => {
        if (this.unshipped >= MAX_UNSHIPPED) throw new Error(`${this.unshipped} records wait for the database`)
      },
      onSynced: (seq) => this.#shipper.add(seq),
    })
    this.#local = openAudit(this.#file, options)
  }

  /** Resolves when the record of the opening is on the disk. */
  async start(): Promise<void> {
    await this.#file.sync()
  }

  get droppedCount(): number {
    return this.#local.droppedCount
  }

  /** How many records only this disk has. */
  get unshipped(): number {
    return this.#shipper.unshipped
  }

  /** For how long the oldest of them has been there. */
  get unshippedMs(): number {
    return this.#shipper.ageMs
  }

  /** Why calls are refused now. */
  get problem(): AuditProblem | undefined {
    if (this.#diskError !== undefined) return { code: 'disk', message: messageOf(this.#diskError) }
    return this.#shipper.problem
  }

  async write(entry: AuditEntry): Promise<void> {
    if (this.#isClosed) throw new ToolgateError('audit_closed', 'The audit is closed.')
    const problem = this.#shipper.problem
    if (problem !== undefined && (entry.event === 'tool_call' || problem.code === 'forked')) {
      this.#report.update(problem)
      throw unavailable(problem.message)
    }
    try {
      await this.#local.write(entry)
      this.#diskError = undefined
    } catch (error) {
      this.#diskError = error
      throw error
    } finally {
      this.#report.update(this.problem)
    }
  }

  /** Records entries of the audit itself. */
  async record(...entries: readonly AuditEntry[]): Promise<void> {
    await Promise.all(entries.map(async (entry) => this.#local.write(entry)))
  }

  /** Waits for the database, so that readers of all replicas see what was written. */
  async flush(): Promise<void> {
    await this.#local.flush()
    if (!(await this.#shipper.drain(PATIENCE_MS)))
      throw unavailable(this.problem?.message ?? `${this.unshipped} records wait for the database`)
  }

  /** Waits a moment until the database has what was written. */
  async settle(): Promise<void> {
    await this.#shipper.drain(PATIENCE_MS)
  }

  /** Ships what is left, if the database takes it now. Otherwise the next start of a replica with this folder does. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#local.close()
    const isShipped = await this.#shipper.drain(PATIENCE_MS)
    await this.#shipper.stop()
    if (!isShipped) return
    try {
      await this.#store.leave()
      removeChainFiles(this.#path)
    } catch {
      // The next start finds nothing to ship, and leaves.
    }
  }

  #removeClosed(seq: number): void {
    this.#shippedSeq = seq
    if (!this.#isRemoving) void this.#removeShipped()
  }

  /** In parts, so that calls do not wait. What cannot be removed now is tried again after the next group. */
  async #removeShipped(): Promise<void> {
    this.#isRemoving = true
    try {
      while (!this.#isClosed && this.#file.removeUpTo(this.#shippedSeq)) await delay(PAUSE_MS)
    } catch {
      // The disk holds more than it must until then.
    } finally {
      this.#isRemoving = false
    }
  }
}

/** Returns the file of one start of a replica. */
export function chainFile(folder: string, incarnation: string): string {
  return join(folder, `${incarnation}.jsonl`)
}

/** Removes a chain from this disk, with its closed files and its lock. */
export function removeChainFiles(path: string): void {
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(basename(path))) rmSync(join(dirname(path), name), { force: true })
}
