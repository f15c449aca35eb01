import { setImmediate as endOfTurn, setTimeout as delay } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import type {
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExportQuery,
  AuditQuery,
  AuditRecord,
} from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { type AuditFile, closedError, unavailableError } from './audit-file.ts'
import type { AuditFileProblem, FileAudit } from './audit-options.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { AuditEvidence } from './evidence.ts'
import { abandonedEntry, type OpenCalls, ownEntry } from './own-records.ts'
import { inputRetention } from './input-retention.ts'
import { Retention } from './retention.ts'
import type { Rounds } from './rounds.ts'
import type { EntryQueue } from './entry-queue.ts'

/** The longest time that a flush or a required write waits for another process to release the file. */
const PATIENCE_MS = 2000
const BUSY_MS = 10
/** The time until refused entries are tried again, in milliseconds. */
const RETRY_MS = 250

/** Reads an audit file. */
abstract class AuditFileReader {
  protected readonly file: AuditFile
  protected isClosed = false

  constructor(file: AuditFile) {
    this.file = file
  }

  async query(query: AuditQuery): Promise<readonly AuditRecord[]> {
    this.beforeRead()
    return this.file.query(query)
  }

  async *exportRecords(
    query: AuditExportQuery = {},
    onUnreadable?: (lines: number) => void,
  ): AsyncGenerator<AuditRecord> {
    this.beforeRead()
    yield* this.file.exportRecords(query, onUnreadable)
  }

  async countOutcomes(query: AuditCountQuery): Promise<AuditCounts> {
    this.beforeRead()
    return this.file.countOutcomes(query)
  }

  inputBoxes(records: readonly AuditRecord[]): readonly (string | undefined)[] {
    this.beforeRead()
    return this.file.boxes?.of(records) ?? records.map(() => undefined)
  }

  protected beforeRead(): void {
    if (this.isClosed) throw closedError(this.file)
  }
}

/** An audit that another process writes. */
export class ReadOnlyAudit extends AuditFileReader implements FileAudit {
  readonly droppedCount = 0

  evidence(): AuditEvidence {
    return { problems: [] }
  }

  async prune(): Promise<void> {}

  async rotate(): Promise<undefined> {}

  write(): never {
    throw new ToolgateError('audit_unavailable', 'The audit was opened for reading only.', { detail: this.file.path })
  }

  async flush(): Promise<void> {}

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.file.close()
  }
}

interface SinkParts {
  readonly file: AuditFile
  readonly queue: EntryQueue
  readonly openCalls: OpenCalls
  readonly checkpoints: Checkpoints
  readonly nowMs: () => number
  readonly maxWaiting: number
  /** How long records are kept, in milliseconds. Absent if all are kept. */
  readonly retainMs?: number | undefined
  /** How long sealed inputs are kept, in milliseconds. Absent if they are kept as long as their records. */
  readonly keepInputsMs?: number | undefined
  readonly onFault: (error: unknown) => void
}

/**
 * The time, in milliseconds, after which an unrepeated failure no longer counts. It is longer than the time between two
 * tries of a batched audit.
 */
const REFUSED_MS = 5000

/** The common part of both modes: the queue, the sync, the checkpoints and closing. */
abstract class AuditFileSink extends AuditFileReader implements FileAudit {
  protected readonly queue: EntryQueue
  protected readonly openCalls: OpenCalls
  /** The error of a failed sync. Later syncs are not trusted, because the system may have dropped unwritten data. */
  protected lostSync: unknown
  readonly #checkpoints: Checkpoints
  readonly #retention: Retention | undefined
  readonly #inputRetention: Rounds | undefined
  /** The last write that the disk refused, if none has succeeded since. */
  #refused: { readonly error: unknown; readonly atMs: number } | undefined
  readonly #nowMs: () => number
  readonly #maxWaiting: number

  constructor(parts: SinkParts) {
    const { file, queue, openCalls, checkpoints, nowMs, maxWaiting, retainMs, onFault } = parts
    super(file)
    this.queue = queue
    this.openCalls = openCalls
    this.#checkpoints = checkpoints
    this.#nowMs = nowMs
    this.#maxWaiting = maxWaiting
    checkpoints.start(() => this.sync())
    this.#inputRetention = this.#retainInputs(parts)
    const { place } = checkpoints
    if (retainMs === undefined || place === undefined) return
    this.#retention = new Retention({
      file,
      place,
      retainMs,
      nowMs,
      onFault,
      record: (entry) => this.recordOwn(entry),
      sign: (pruned) => checkpoints.sign(pruned),
      openSince: () => Math.min(...openCalls.list().map(({ wallMs }) => wallMs)),
    })
    this.#retention.start()
  }

  #retainInputs({ file, keepInputsMs, nowMs, onFault }: SinkParts): Rounds | undefined {
    const { boxes } = file
    if (keepInputsMs === undefined || boxes === undefined) return undefined
    return inputRetention({
      keepForMs: keepInputsMs,
      nowMs,
      onFault,
      hasBefore: async (atMs) => boxes.hasBefore(atMs),
      removeBefore: async (atMs) => boxes.removeBefore(atMs),
      isPassing: (error) => file.isPassing(error),
      record: (entry) => this.recordOwn(entry),
    })
  }

  get droppedCount(): number {
    return this.queue.droppedCount
  }

  evidence(): AuditEvidence {
    return this.#checkpoints.evidence()
  }

  abstract write(entry: AuditEntry): void | Promise<void>

  async flush(): Promise<void> {
    if (!this.isClosed) await this.settle()
  }

  async prune(): Promise<void> {
    if (this.isClosed) return
    await this.#retention?.run()
    await this.#inputRetention?.run()
  }

  async rotate(): Promise<string | undefined> {
    if (this.isClosed) throw closedError(this.file)
    await this.settle()
    // A process's first checkpoint determines which records are signed. A file can only be closed at the end of a
    // signed group.
    await this.#checkpoints.sign()
    const closed = this.file.rotate()
    await this.#checkpoints.sign()
    return closed
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.#retention?.close()
    await this.#inputRetention?.close()
    try {
      await this.finish()
    } finally {
      await this.#checkpoints.close()
      this.file.close()
    }
  }

  /** Resolves when all earlier entries are on the disk. @throws {ToolgateError} `audit_unavailable` */
  protected abstract settle(): Promise<void>

  /** Stores an entry of the audit itself, durably. @throws {ToolgateError} `audit_unavailable` */
  protected abstract recordOwn(entry: AuditEntry): Promise<void>

  /** Writes the remaining entries, and those of {@link addLast}. */
  protected abstract finish(): Promise<void>

  /** Queues an entry. @throws {ToolgateError} `audit_closed`, or `audit_unavailable` with the last error of the disk */
  protected accept(entry: AuditEntry, failure: () => unknown): void {
    if (this.isClosed) throw closedError(this.file)
    if (this.lostSync !== undefined || this.queue.isFull(this.#maxWaiting)) {
      this.queue.refuse()
      throw unavailableError(this.file, this.lostSync ?? failure())
    }
    this.queue.add(entry)
    this.openCalls.note(entry)
  }

  /** Stores all entries of the queue, or throws and keeps them. */
  protected store(): void {
    try {
      this.#checkpoints.stored(this.queue.store())
      this.#refused = undefined
    } catch (error) {
      if (!this.file.isPassing(error)) this.#refused = { error, atMs: this.#nowMs() }
      throw error
    }
  }

  /**
   * The reason why the audit cannot record now. A failure that was not repeated for a while no longer counts, because
   * there may have been no further try.
   */
  get problem(): AuditFileProblem | undefined {
    const { error, atMs } = this.#refused ?? { error: this.lostSync, atMs: Number.POSITIVE_INFINITY }
    if (error === undefined || this.#nowMs() - atMs > REFUSED_MS) return undefined
    return { code: 'disk', message: `the audit cannot be written: ${messageOf(error)}` }
  }

  protected async sync(): Promise<void> {
    if (this.lostSync === undefined) {
      await this.file.sync().catch((error: unknown) => {
        this.lostSync = error
      })
    }
    if (this.lostSync !== undefined) throw this.lostSync
  }

  /** Queues the last entries of an audit: the ends of open calls, and `audit_closed`. */
  protected addLast(): void {
    for (const call of this.openCalls.list()) this.queue.addOwn(abandonedEntry(call, this.#nowMs()))
    const signedSeq = this.evidence().checkpoints?.signedSeq
    this.queue.addOwn(ownEntry('audit_closed', this.#nowMs(), { signed_seq: signedSeq }))
  }
}

const GROUP_SIZE = 200
const GROUP_MS = 100
const SYNC_MS = 1000

/**
 * A sink whose writes return at once, and which stores entries in groups.
 *
 * Entries that the disk refuses wait in order and are tried again. When too many wait, writes throw
 * `audit_unavailable`, so that the gate refuses calls instead of running them unrecorded.
 */
export class BatchedAudit extends AuditFileSink {
  #groupTimer: NodeJS.Timeout | undefined
  /** Set while stored entries are not synced. */
  #syncTimer: NodeJS.Timeout | undefined
  #failure: unknown

  constructor(parts: SinkParts) {
    super(parts)
    if (this.queue.hasAny) this.#groupTimer = this.#storeIn(GROUP_MS).unref()
  }

  write(entry: AuditEntry): void {
    this.accept(entry, () => this.#failure)
    if (this.queue.count >= GROUP_SIZE && this.#failure === undefined) this.#storeGroup()
    else this.#groupTimer ??= this.#storeIn(GROUP_MS)
  }

  protected override beforeRead(): void {
    super.beforeRead()
    if (this.queue.hasAny && this.#failure === undefined) this.#storeGroup()
  }

  protected async settle(): Promise<void> {
    await this.#storeAll()
    await this.#syncStored()
    const problem = this.lostSync ?? this.#failure
    if (problem !== undefined) throw unavailableError(this.file, problem)
  }

  protected async recordOwn(entry: AuditEntry): Promise<void> {
    this.queue.addOwn(entry)
    await this.settle()
  }

  protected async finish(): Promise<void> {
    if (this.queue.hasAny) this.#storeGroup()
    this.addLast()
    try {
      await this.settle()
    } finally {
      clearTimeout(this.#groupTimer)
      clearTimeout(this.#syncTimer)
      this.queue.drop()
    }
  }

  #storeIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#storeGroup(), ms)
  }

  #storeGroup(): void {
    clearTimeout(this.#groupTimer)
    this.#groupTimer = undefined
    try {
      this.store()
      this.#failure = undefined
      this.#syncTimer ??= setTimeout(() => void this.#syncStored(), SYNC_MS).unref()
    } catch (error) {
      this.#failure = error
      this.#groupTimer = this.#storeIn(RETRY_MS).unref()
    }
  }

  /** Waits a moment for another process to release the file. */
  async #storeAll(): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS
    while (this.queue.hasAny) {
      this.#storeGroup()
      if (this.#failure === undefined || !this.file.isPassing(this.#failure) || performance.now() >= deadlineMs) return
      await delay(BUSY_MS)
    }
  }

  /** Never rejects: `lostSync` holds the error. */
  async #syncStored(): Promise<void> {
    if (this.#syncTimer === undefined) return
    clearTimeout(this.#syncTimer)
    this.#syncTimer = undefined
    await this.sync().catch(() => {})
  }
}

/**
 * A sink whose writes resolve when the entry is on the disk.
 *
 * Writes of one turn of the event loop share a commit, as do writes that arrive while the disk is busy. A write that
 * the disk refuses rejects with `audit_unavailable`, and its entry is dropped.
 */
export class RequiredAudit extends AuditFileSink {
  /** The promise for all writes whose entries wait. */
  #group: PromiseWithResolvers<void> | undefined
  #working: Promise<void> | undefined
  #retryTimer: NodeJS.Timeout | undefined

  constructor(parts: SinkParts) {
    super(parts)
    this.#retryOwn()
  }

  async write(entry: AuditEntry): Promise<void> {
    this.accept(entry, () => new Error(`${this.queue.count} entries wait for the disk`))
    this.#group ??= Promise.withResolvers()
    this.#working ??= this.#work()
    return this.#group.promise
  }

  protected async settle(): Promise<void> {
    await this.#working
    if (this.lostSync !== undefined) throw unavailableError(this.file, this.lostSync)
  }

  protected async recordOwn(entry: AuditEntry): Promise<void> {
    this.queue.addOwn(entry)
    // The current group may include this entry, but the group's own code must resolve its writes.
    while (this.#working !== undefined) await this.#working
    try {
      this.store()
      await this.sync()
    } catch (error) {
      this.#retryOwn()
      throw unavailableError(this.file, error)
    }
  }

  protected async finish(): Promise<void> {
    clearTimeout(this.#retryTimer)
    await this.settle()
    this.addLast()
    try {
      this.store()
      await this.sync()
    } catch {
      // The next opening ends the open calls.
    }
  }

  async #work(): Promise<void> {
    while (this.queue.count > 0) {
      await endOfTurn()
      const stored = await this.#storeGroup()
      if (!stored) continue
      try {
        await this.sync()
        stored.resolve()
      } catch (error) {
        stored.reject(unavailableError(this.file, error))
      }
    }
    this.#working = undefined
  }

  /** Returns the stored group, or `undefined` if it was refused. Entries that arrive while the group waits join it. */
  async #storeGroup(): Promise<PromiseWithResolvers<void> | undefined> {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        this.store()
        return this.#takeGroup()
      } catch (error) {
        if (!this.file.isPassing(error) || performance.now() >= deadlineMs) {
          for (const entry of this.queue.drop()) this.openCalls.forget(entry)
          this.#takeGroup()?.reject(unavailableError(this.file, error))
          this.#retryOwn()
          return undefined
        }
      }
      await delay(BUSY_MS)
    }
  }

  #takeGroup(): PromiseWithResolvers<void> | undefined {
    const taken = this.#group
    this.#group = undefined
    return taken
  }

  /** Schedules the audit's own entries, such as the number of dropped ones, without waiting for the next call. */
  #retryOwn(): void {
    if (this.queue.hasAny && !this.isClosed) this.#retryTimer ??= setTimeout(() => this.#storeOwn(), RETRY_MS).unref()
  }

  #storeOwn(): void {
    this.#retryTimer = undefined
    if (this.isClosed || this.#working !== undefined) return this.#retryOwn()
    try {
      this.store()
    } catch {
      this.#retryOwn()
    }
  }
}
