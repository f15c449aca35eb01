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

/** The bytes after which a file is closed. It is removed once the database has its records. */
const FILE_BYTES = 16_000_000
/** The maximum number of records that only this disk has, some 150 MB. Further records are refused. */
const MAX_UNSHIPPED = 250_000
const PATIENCE_MS = 2000
/** The pause between parts of a removal, in milliseconds. */
const PAUSE_MS = 10

/**
 * A sink whose writes resolve when the record is on this disk. The records are shipped to the database in groups.
 *
 * Once a record has waited for the database for a second, calls are refused. The ends of running calls and the refusals
 * are stored on the disk and shipped later.
 */
export class DiskSink {
  readonly #path: string
  readonly #store: ChainStore
  readonly #file: AuditFile
  readonly #local: FileAudit
  readonly #shipper: Shipper
  readonly #report: ProblemReport
  /** The error of the disk, until the disk accepts a record again. */
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

  /** Starts the sink. Resolves when the record of the opening is on the disk. */
  async start(): Promise<void> {
    await this.#file.sync()
  }

  get droppedCount(): number {
    return this.#local.droppedCount
  }

  /** The number of records that only this disk has. */
  get unshipped(): number {
    return this.#shipper.unshipped
  }

  /** The age of the oldest of them, in milliseconds. */
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

  /** Waits a moment for the database to receive the written records. */
  async settle(): Promise<void> {
    await this.#shipper.drain(PATIENCE_MS)
  }

  /**
   * Ships the remaining records, if the database accepts them now. Otherwise the next start of a replica with this
   * folder ships them.
   */
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

  /** Removes shipped records in parts, so that calls do not wait. A failed removal is repeated after the next group. */
  async #removeShipped(): Promise<void> {
    this.#isRemoving = true
    try {
      while (!this.#isClosed && this.#file.removeUpTo(this.#shippedSeq)) await delay(PAUSE_MS)
    } catch {
      // Until then the disk keeps more than it needs.
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
