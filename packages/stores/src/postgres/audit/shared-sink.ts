import { setImmediate as endOfTurn, setTimeout as delay } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import {
  type AuditEntry,
  type AuditSink,
  createRecordTree,
  createSealer,
  recordKeys,
  type RecordTree,
  type Sealer,
  type SealOptions,
} from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { sealedOf } from '@toolgate/core/internal'
import { EntryQueue } from '../../entry-queue.ts'
import { abandonedEntry, createOpenCalls, ownEntry } from '../../own-records.ts'
import { type AuditProblem, ProblemReport, unavailable } from './audit-problem.ts'
import type { ChainStore, KeptBox, SealedGroup } from './chain-store.ts'

interface SharedSinkParts {
  readonly store: ChainStore
  readonly sealing: SealOptions
  readonly sealer: Sealer
  readonly tree: RecordTree
  readonly nowMs: () => number
  readonly maxWaiting: number
  /** Waits for more records. Default: a timer. */
  readonly wait?: (ms: number) => Promise<unknown>
  /** Called when calls begin to be refused, and when they are accepted again. */
  readonly onProblem?: (problem: AuditProblem | undefined) => void
}

/** The longest time that a write waits for the database before it is refused. */
const PATIENCE_MS = 2000
const AGAIN_MS = 25
const RETRY_MS = 250
/**
 * If at least this many records arrive together, the next group waits a moment to collect more. Fewer, larger groups
 * cost less.
 */
const BUSY_COUNT = 8
const GATHER_MS = 1

/**
 * A sink whose writes resolve when the record is committed in the database, so that the record survives this machine.
 *
 * Writes that arrive while a group is being sent, or in a busy moment soon after it, form the next group. A sealed
 * group is sent until the database has it, because a missing answer may still mean a commit; sending it again changes
 * nothing. While it is unanswered, calls are refused, and the ends of running calls are kept.
 */
export class SharedSink implements AuditSink {
  readonly #store: ChainStore
  readonly #sealer: Sealer
  readonly #tree: RecordTree
  readonly #nowMs: () => number
  readonly #maxWaiting: number
  readonly #wait: (ms: number) => Promise<unknown>
  readonly #queue: EntryQueue
  readonly #sealing: SealOptions
  readonly #openCalls = createOpenCalls<AuditEntry>()
  readonly #report: ProblemReport
  /** The group that is sealed, and may be committed. */
  #sent: { readonly group: SealedGroup; readonly entries: readonly AuditEntry[] } | undefined
  /** The size of the last group that the database accepted. */
  #takenCount = 0
  /** The promise for the writes whose entries wait. */
  #waiting: PromiseWithResolvers<void> | undefined
  #sending: PromiseWithResolvers<void> | undefined
  #isWorking = false
  #failure: unknown
  /** The error that another process has written to the chain. It is permanent. */
  #fork: Error | undefined
  #isClosed = false

  constructor({
    store,
    sealing,
    sealer,
    tree,
    nowMs,
    maxWaiting,
    wait = delay,
    onProblem = () => {},
  }: SharedSinkParts) {
    this.#report = new ProblemReport(onProblem)
    this.#store = store
    this.#sealer = sealer
    this.#sealing = sealing
    this.#tree = tree
    this.#nowMs = nowMs
    this.#maxWaiting = maxWaiting
    this.#wait = wait
    this.#queue = new EntryQueue({ append: (entries) => this.#seal(entries) }, nowMs, sealing)
  }

  get droppedCount(): number {
    return this.#queue.droppedCount
  }

  /** Why calls are refused now. */
  get problem(): AuditProblem | undefined {
    if (this.#fork !== undefined) return { code: 'forked', message: messageOf(this.#fork) }
    if (this.#failure === undefined) return undefined
    return { code: 'silent', message: `the database does not answer: ${messageOf(this.#failure)}` }
  }

  async write(entry: AuditEntry): Promise<void> {
    if (this.#isClosed) throw new ToolgateError('audit_closed', 'The audit is closed.')
    const hasFailed = this.problem !== undefined
    const isRefused = this.#fork !== undefined || (hasFailed && entry.event === 'tool_call')
    if (isRefused || this.#queue.isFull(this.#maxWaiting)) {
      this.#queue.refuse()
      throw this.#unavailable()
    }
    this.#queue.add(entry)
    this.#openCalls.note(entry)
    // The entry is kept, but is not durable yet.
    if (hasFailed) throw this.#unavailable()
    return this.#send()
  }

  /** Records an entry of the audit itself, and keeps it until the database has it. */
  async record(...entries: readonly AuditEntry[]): Promise<void> {
    for (const entry of entries) this.#queue.addOwn(entry)
    return this.#send()
  }

  async flush(): Promise<void> {
    await (this.#waiting ?? this.#sending)?.promise
    if (this.problem !== undefined) throw this.#unavailable()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const call of this.#openCalls.list()) this.#queue.addOwn(abandonedEntry(call, this.#nowMs()))
    // If the database does not accept these ends now, another replica ends the calls.
    try {
      await this.record(ownEntry('audit_closed', this.#nowMs()))
      await this.#store.leave()
    } catch {
      // The signer detects that the chain is lost.
    }
  }

  #send(): Promise<void> {
    this.#waiting ??= withHandledRejection()
    const { promise } = this.#waiting
    if (!this.#isWorking) void this.#work()
    return promise
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    while (this.#queue.hasAny || this.#sent !== undefined) {
      await this.#gather()
      if (this.#sent === undefined) this.#queue.store()
      this.#sending = this.#waiting
      this.#waiting = undefined
      const isDelivered = await this.#deliver()
      this.#sending = undefined
      if (!isDelivered) {
        this.#rejectWaiting()
        break
      }
    }
    // This is set in the turn of the last look at the queue, so that no write waits for work that has ended.
    this.#isWorking = false
  }

  /** Waits for the writes of this turn. In a busy moment, it waits some turns more. */
  async #gather(): Promise<void> {
    const isBusy = this.#takenCount + this.#queue.count >= BUSY_COUNT
    this.#takenCount = 0
    await (isBusy ? this.#wait(GATHER_MS) : endOfTurn())
  }

  /** Sends the sealed group until the database has it. Returns `false` if the database never will. */
  async #deliver(): Promise<boolean> {
    const late = setTimeout(() => this.#fail(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
    try {
      while (this.#sent !== undefined) {
        try {
          const other = await this.#store.append(this.#sent.group)
          if (other !== undefined) return this.#stop(other)
          this.#takenCount = this.#sent.entries.length
          this.#sent = undefined
          this.#failure = undefined
          this.#report.update(undefined)
          this.#sending?.resolve()
        } catch (error) {
          if (this.#failure !== undefined) this.#fail(error)
          if (this.#isClosed && this.#failure !== undefined) return false
          if (this.#failure === undefined) await delay(AGAIN_MS)
          else await delay(RETRY_MS, undefined, { ref: false })
        }
      }
      return true
    } finally {
      clearTimeout(late)
    }
  }

  /**
   * Refuses the waiting entries. Calls of the group that is being sent are refused too, though their records may be
   * committed.
   */
  #fail(error: unknown): void {
    const isFirst = this.#failure === undefined
    this.#failure = error
    this.#report.update(this.problem)
    const refused = this.#queue.drop(({ event }) => event !== 'tool_call')
    for (const entry of refused) this.#openCalls.forget(entry)
    if (isFirst)
      for (const entry of this.#sent?.entries ?? []) {
        if (entry.event !== 'tool_call') continue
        this.#openCalls.forget(entry)
        this.#queue.addOwn({ ...abandonedEntry(entry, this.#nowMs()), reason: 'audit_unavailable', detail: REFUSED })
      }
    this.#sending?.reject(this.#unavailable())
    this.#rejectWaiting()
  }

  #rejectWaiting(): void {
    this.#waiting?.reject(this.#unavailable())
    this.#waiting = undefined
  }

  #stop(seq: number): false {
    this.#fork = new Error(`record ${seq} of this chain has another content: another process writes as this replica`)
    this.#fail(this.#fork)
    return false
  }

  #seal(entries: readonly AuditEntry[]): void {
    const after = { seq: this.#sealer.seq, head: this.#sealer.head }
    const boxes: KeptBox[] = []
    const records = entries.map((entry) => {
      const text = this.#sealer.seal(entry)
      this.#tree.add(this.#sealer.head)
      const { atMs } = recordKeys(entry)
      const box = sealedOf(entry, this.#sealing)?.box
      if (box !== undefined) boxes.push({ seq: this.#sealer.seq, atMs, box })
      return { atMs, event: entry.event, text }
    })
    const end = { seq: this.#sealer.seq, head: this.#sealer.head }
    this.#sent = { group: { after, end, root: this.#tree.root(), records, boxes }, entries }
  }

  #unavailable(): ToolgateError {
    return unavailable(this.problem?.message ?? `${this.#queue.count} entries wait for the database`)
  }
}

/** Returns a promise whose rejection never ends the process, even if nobody awaits it. */
function withHandledRejection(): PromiseWithResolvers<void> {
  const group = Promise.withResolvers<void>()
  group.promise.catch(() => undefined)
  return group
}

/** Returns the start of a chain. */
export function newChain(sealing: SealOptions): { readonly sealer: Sealer; readonly tree: RecordTree } {
  return { sealer: createSealer(sealing), tree: createRecordTree() }
}

const REFUSED = 'the record was not confirmed in time, so the call was refused'
