import { createEmitter, messageOf, runWithDeadline } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import { RenewedLease, LEASE_MS, type LeaseProblem, type LeaseState } from './lease.ts'
import { whyLapsed } from './lapse-text.ts'
import type { Replica, ReplicaWord, SharedPosition } from '../postgres/replicas.ts'
import type { ReplicaStore } from './replica-store.ts'

interface RenewalsOptions {
  readonly replica: Replica
  readonly store: Pick<ReplicaStore, 'renew'>
  readonly clock: Clock
  /** Returns this replica's status for the others. */
  readonly word: () => ReplicaWord
  /** Applies the current state, which has at least this revision. */
  readonly apply: (revision: number) => Promise<void>
  /** Called before the lease holds again, if others may have taken over this replica's resources. */
  readonly onLate: () => Promise<void>
  /** Called with the reason of a failed renewal, once until a renewal succeeds. */
  readonly onFault: (error: unknown) => void
}

const RENEW_MS = 500
/** The maximum number of characters of a reason in the status. */
const MAX_WORD = 500
/** The longest wait for an answer, in milliseconds. A later answer could hardly renew anything. */
export const ANSWER_MS = 1000

/** Renews the lease of a replica every 500 ms, and immediately when the state is known to have changed. */
export class Renewals {
  readonly #options: RenewalsOptions
  readonly #lease: RenewedLease
  readonly #ended = createEmitter()
  #applied = -1
  #failed = 0
  #problem: LeaseProblem | undefined
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  /** Whether something has changed since the current renewal began. */
  #isHinted = false
  #isClosed = false

  constructor(options: RenewalsOptions) {
    this.#options = options
    this.#lease = new RenewedLease(options.clock)
  }

  get state(): LeaseState {
    const { holds, ageMs, seen } = this.#lease
    const revision = { applied: Math.max(0, this.#applied), seen }
    return { holds, ageMs, revision, failed: this.#failed, problem: this.#problem }
  }

  get holds(): boolean {
    return this.#lease.holds
  }

  /** Calls the listener after each renewal, successful or not. */
  readonly subscribe = this.#ended.subscribe

  /** Resolves after the first renewal. If the lease does not hold then, the renewal failed. */
  async start(): Promise<void> {
    await this.#renew()
  }

  /** Drops the lease, and applies the whole state again. */
  async begin(): Promise<void> {
    await this.#renewing
    this.#lease.drop()
    this.#applied = -1
    await this.#renew()
  }

  /** Renews now, or again after the current renewal. Resolves when the current state is applied, or could not be. */
  async now(): Promise<void> {
    if (this.#renewing) this.#isHinted = true
    await this.#renew()
    if (this.#isHinted && !this.#isClosed) await this.#renew()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#lease.drop()
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce().finally(() => {
      this.#renewing = undefined
      this.#ended.emit()
    })
    return this.#renewing
  }

  async #renewOnce(): Promise<void> {
    clearTimeout(this.#timer)
    const startedMs = this.#options.clock.monotonicMs()
    this.#isHinted = false
    try {
      this.#problem = await this.#ask()
      if (this.#problem) this.#failed++
    } catch (error) {
      this.#fail({ kind: 'silent', error: messageOf(error) }, error)
    }
    if (this.#isClosed) return
    const passedMs = this.#options.clock.monotonicMs() - startedMs
    const delayMs = this.#isHinted ? 0 : Math.max(0, RENEW_MS - passedMs)
    this.#timer = setTimeout(() => void this.#renew(), delayMs).unref()
  }

  /** Renews once. Returns why the lease was not renewed. */
  async #ask(): Promise<LeaseProblem | undefined> {
    const { replica, apply } = this.#options
    const refuses = this.#lease.holds ? undefined : whyLapsed(this.state).slice(0, MAX_WORD)
    const word = { ...this.#options.word(), refuses }
    const renew = () =>
      runWithDeadline(() => this.#options.store.renew(replica, Math.max(0, this.#applied), word), ANSWER_MS)
    const sent = this.#lease.send()
    const answer = await renew()
    const problem = this.#look(answer)
    if (problem) return problem
    const isLate = answer.wasLate || this.#problem !== undefined
    if (isLate) await runWithDeadline(this.#options.onLate, ANSWER_MS)
    const isNewer = answer.revision > this.#applied
    if (isNewer)
      try {
        await runWithDeadline(() => apply(answer.revision), LEASE_MS)
      } catch (error) {
        this.#options.onFault(error)
        return { kind: 'behind', error: messageOf(error) }
      }
    // The state may come from a standby that was promoted after the answer. This second answer comes after the read.
    const doubt = isNewer ? this.#look(await renew()) : undefined
    if (doubt) return doubt
    this.#applied = answer.revision
    this.#lease.confirm(sent)
    // The others wait for confirmation that the revision is applied, and need to know that calls start again.
    if (isNewer || refuses !== undefined) this.#isHinted = true
    return undefined
  }

  #look(answer: SharedPosition): LeaseProblem | undefined {
    return answer.isTaken ? { kind: 'taken' } : this.#lease.look(answer)
  }

  #fail(problem: LeaseProblem, error: unknown): void {
    const isFirst = this.#problem === undefined
    this.#problem = problem
    this.#failed++
    if (isFirst) this.#options.onFault(error)
  }
}
