import type { MaybePromise, StateEntry, StateStore } from '../ports.ts'
import { backgroundTimeout, backoffMs, type Outcome, runWithDeadline, startTask } from '../util/async.ts'

export interface MirrorOptions {
  readonly state: StateStore
  /** Of the keys that are read. */
  readonly prefix: string
  /** The longest wait for the store. */
  readonly deadlineMs: number
  /** The wait after the first failure in a row. Default 1,000. */
  readonly retryMs?: number
  /** The wait doubles up to this. Default: it does not double. */
  readonly maxRetryMs?: number
  /** The least time between a reading and the next one that a change of the store causes. Default 0. */
  readonly gapMs?: number
  /**
   * Receives what the store has. It may return a function that writes what the store lacks. The store is then read
   * again, as another process may have been faster.
   */
  readonly onRead: (entries: readonly StateEntry[], isFirst: boolean) => Completion | undefined | void
  /** Receives why the store failed, and for which time in a row. The store is asked again until it works. */
  readonly onFailed: (error: unknown, times: number) => void
  readonly onRecovered?: () => void
}

/** Writes something and calls `done` when that has ended. */
export type Completion = (done: (outcome: Outcome<void>) => void) => void

const RETRY_MS = 1000

/**
 * Reads a part of a state store whole: at the beginning, whenever the store changes, and after each write of this
 * process.
 *
 * There is one reading at a time. A reading during which a write of this process began or ended is dropped, as it may
 * bring the old state back. With a store that answers at once, all of this happens at once.
 */
export class Mirror {
  readonly #options: MirrorOptions
  #unsubscribe: (() => void) | undefined
  #isStarted = false
  #isRead = false
  #isReading = false
  #isClosed = false
  /** The store has changed since the reading began. */
  #isStale = false
  /** The next reading does not wait for the gap. */
  #isUrgent = false
  /** How often in a row the store could not be read. */
  #failures = 0
  /** How often in a row the store could not be subscribed to. */
  #deafness = 0
  /** Grows when a write begins and when it ends. */
  #writes = 0
  readonly #writing = new Map<string, Promise<unknown>>()
  #gap: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  readonly #waiting: (() => void)[] = []

  constructor(options: MirrorOptions) {
    this.#options = options
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  /** Whether the store has answered yet. */
  get isRead(): boolean {
    return this.#isRead
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Whether a reading is under way, or waits for the gap. */
  get isBusy(): boolean {
    return this.#isReading || this.#isStale
  }

  /** Follows the store from now on. A store that cannot be subscribed to is read again and again. */
  start(): void {
    this.#isStarted = true
    this.refresh()
  }

  /** Reads the store now, or at the end of the reading that is under way. */
  refresh(): void {
    if (this.#isReading) this.#isUrgent = true
    else if (!this.#isClosed) this.#read()
  }

  /** Resolves when no reading is under way. One that waits for the gap begins at once. */
  idle(): Promise<void> {
    if (this.#isStale && !this.#isReading) this.#read()
    return this.#isReading ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve()
  }

  /** Writes something. The writes of one key happen one after the other, each with a deadline of its own. */
  async write(key: string, work: () => MaybePromise<unknown>): Promise<void> {
    this.#writes++
    const before = this.#writing.get(key) ?? Promise.resolve()
    const written = before.then(() => runWithDeadline(work, this.#options.deadlineMs))
    const ended = written.catch(() => {})
    this.#writing.set(key, ended)
    try {
      await written
    } finally {
      if (this.#writing.get(key) === ended) this.#writing.delete(key)
      this.#writes++
      this.refresh()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#isStale = false
    this.#unsubscribe?.()
    this.#clearTimers()
  }

  #subscribe(): void {
    if (this.#unsubscribe || !this.#isStarted) return
    try {
      this.#unsubscribe = this.#options.state.subscribe(() => this.#changed())
      this.#deafness = 0
    } catch (error) {
      this.#options.onFailed(error, ++this.#deafness)
    }
  }

  #changed(): void {
    if (this.#isClosed) return
    if (this.#isReading || this.#gap) this.#isStale = true
    else this.#read()
  }

  #read(isSecond = false): void {
    const { state, prefix, deadlineMs } = this.#options
    this.#isReading = true
    this.#isStale = false
    this.#isUrgent = false
    this.#clearTimers()
    this.#subscribe()
    const before = this.#writes
    startTask({
      run: () => state.list(prefix),
      deadlineMs,
      onEnd: (outcome) => {
        const isDropped = before !== this.#writes
        if (isDropped) this.#isUrgent = true
        if ('error' in outcome || isDropped || this.#isClosed) this.#end(outcome)
        else this.#use(outcome.value, isSecond)
      },
    })
  }

  #use(entries: readonly StateEntry[], isSecond: boolean): void {
    const isFirst = !this.#isRead
    let complete: Completion | undefined | void
    try {
      if (!Array.isArray(entries)) throw new TypeError('the state store answered no list')
      this.#isRead = true
      complete = this.#options.onRead(entries, isFirst)
    } catch (error) {
      this.#isRead = !isFirst
      return this.#end({ error })
    }
    if (!complete || isSecond) return this.#end({ value: undefined })
    complete((completed) => {
      if ('error' in completed || this.#isClosed) this.#end(completed)
      else this.#read(true)
    })
  }

  #end(outcome: Outcome<unknown>): void {
    this.#isReading = false
    const wasFailing = this.isFailing
    if (!this.#isClosed) {
      this.#failures = 'error' in outcome ? this.#failures + 1 : 0
      if ('error' in outcome) this.#options.onFailed(outcome.error, this.#failures)
      else if (wasFailing) this.#options.onRecovered?.()
      if (this.#isReading) return
      if (this.#isUrgent && !this.isFailing) return this.#read()
      this.#rest()
    }
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Waits for the gap, and then for a change or until it is time to try again. */
  #rest(): void {
    const { gapMs = 0, retryMs = RETRY_MS, maxRetryMs = retryMs } = this.#options
    const next = () => {
      this.#gap = undefined
      const failures = Math.max(this.#failures, this.#deafness)
      if (this.#isStale) return this.#read()
      if (failures === 0) return
      const delayMs = backoffMs(failures, { firstMs: retryMs, maxMs: maxRetryMs, random: () => 1 })
      this.#retry = backgroundTimeout(() => this.#read(), delayMs)
    }
    if (gapMs === 0) next()
    else this.#gap = backgroundTimeout(next, gapMs)
  }

  #clearTimers(): void {
    clearTimeout(this.#gap)
    clearTimeout(this.#retry)
    this.#gap = undefined
  }
}
