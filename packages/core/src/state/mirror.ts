import type { StateChange, StateEntry, StateStore } from '../ports/ports.ts'
import { backgroundTimeout, backoffMs, type Outcome, runWithDeadline, startTask } from '@toolgate/values'

export interface MirrorOptions {
  readonly state: StateStore
  /** The prefix of the keys to read. */
  readonly prefix: string
  /** Milliseconds to wait for the store. */
  readonly deadlineMs: number
  /** Milliseconds to wait after the first failure in a row. Default 1,000. */
  readonly retryMs?: number
  /** The wait doubles up to this. Default: it does not double. */
  readonly maxRetryMs?: number
  /** The least milliseconds between two reads that changes of the store cause. Default 0. */
  readonly gapMs?: number
  /**
   * Receives the entries of the store. It may return a function that writes what the store lacks. The store is then read
   * again, because another process may have been faster.
   */
  readonly onRead: (entries: readonly StateEntry[], isFirst: boolean) => Completion | undefined | void
  /** Receives the error of the store and how often it has failed in a row. The read is repeated until it succeeds. */
  readonly onFailed: (error: unknown, times: number) => void
  readonly onRecovered?: () => void
}

/** Starts work and calls `done` when it has ended. */
export type Completion = (done: (outcome: Outcome<void>) => void) => void

const RETRY_MS = 1000
/** A read that has not ended this long after the store changed is replaced by a new one. */
const PATIENCE_MS = 300

/** The phase of a mirror. After a read comes `gap` or another read; after `gap` comes `waiting`. */
type Phase =
  | ReadingPhase
  | Gap
  | { readonly kind: 'waiting'; readonly timer?: NodeJS.Timeout }
  | { readonly kind: 'closed' }

interface ReadingPhase {
  readonly kind: 'reading'
  /** What follows the read: nothing, another read after the gap because the store has changed, or another read at once. */
  next: 'nothing' | 'after-gap' | 'at-once'
  /** A write of this process began or ended during the read. */
  isOutdated: boolean
  /** The read replaces one that did not end. It is never replaced itself, so a slow store is still read. */
  readonly isReplacement: boolean
  /** The store has not answered yet. */
  isAsking: boolean
  timer?: NodeJS.Timeout
}

interface Gap {
  readonly kind: 'gap'
  /** The store has changed, so read it at the end of the gap. */
  isStale: boolean
  timer?: NodeJS.Timeout
}

/**
 * Keeps a copy of part of a state store. Reads it at the start, whenever the store changes, and after each write of this
 * process.
 *
 * Only one read runs at a time, and a read that does not end is replaced when the store changes. A read is dropped if a
 * write of this process began or ended meanwhile, because it may return the old state. With a synchronous store, all of
 * this is synchronous.
 */
export class Mirror {
  readonly #options: MirrorOptions
  #phase: Phase = { kind: 'waiting' }
  #isStarted = false
  #isRead = false
  #unsubscribe: (() => void) | undefined
  /** How often in a row reading and subscribing have failed. */
  #failures = { reading: 0, subscribing: 0 }
  /** The failure of the latest read. */
  #failure: { readonly error: unknown } | undefined
  readonly #writing = new Map<string, Promise<unknown>>()
  readonly #idle: (() => void)[] = []

  constructor(options: MirrorOptions) {
    this.#options = options
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  /** Whether the store has been read once. */
  get isRead(): boolean {
    return this.#isRead
  }

  get isFailing(): boolean {
    return this.#failures.reading > 0
  }

  /** Whether a reading is under way, or waits for the gap. */
  get isBusy(): boolean {
    return this.#isReading || (this.#phase.kind === 'gap' && this.#phase.isStale)
  }

  /** Starts to follow the store. If subscribing fails, the store is polled. */
  start(): void {
    this.#isStarted = true
    this.refresh()
  }

  /** Reads the store now, or after the current read. */
  refresh(): void {
    if (this.#phase.kind === 'reading') this.#phase.next = 'at-once'
    else if (this.#phase.kind !== 'closed') this.#read()
  }

  /** Resolves when no read is under way. A read that waits for the gap starts at once. */
  idle(): Promise<void> {
    if (this.#phase.kind === 'gap' && this.#phase.isStale) this.#read()
    return this.#isReading ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve()
  }

  /** Runs a write. Writes to one key run one after the other, each with its own deadline. */
  async write(key: string, work: () => unknown): Promise<void> {
    this.#outdate()
    const before = this.#writing.get(key) ?? Promise.resolve()
    const written = before.then(() => runWithDeadline(work, this.#options.deadlineMs))
    const ended = written.catch(() => {})
    this.#writing.set(key, ended)
    try {
      await written
    } finally {
      if (this.#writing.get(key) === ended) this.#writing.delete(key)
      this.#outdate()
      this.refresh()
    }
  }

  close(): void {
    this.#enter({ kind: 'closed' })
    this.#unsubscribe?.()
    this.#resolveIdle()
  }

  get #isReading(): boolean {
    return this.#phase.kind === 'reading'
  }

  #isIn(phase: Phase): boolean {
    return this.#phase === phase
  }

  #enter(phase: Phase): void {
    if ('timer' in this.#phase) clearTimeout(this.#phase.timer)
    this.#phase = phase
  }

  #outdate(): void {
    if (this.#phase.kind === 'reading') this.#phase.isOutdated = true
  }

  #resolveIdle(): void {
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #subscribe(): void {
    if (this.#unsubscribe || !this.#isStarted) return
    try {
      this.#unsubscribe = this.#options.state.subscribe((change) => this.#onChange(change))
      this.#failures.subscribing = 0
    } catch (error) {
      this.#options.onFailed(error, ++this.#failures.subscribing)
    }
  }

  #onChange(change: StateChange | undefined): void {
    const phase = this.#phase
    if (phase.kind === 'gap') phase.isStale = true
    else if (phase.kind === 'waiting') this.#read()
    else if (phase.kind === 'reading') this.#onChangeWhile(phase)
    change?.waitUntil(this.#applied())
  }

  /** Resolves when a read that starts after now is applied. @throws the store's error */
  async #applied(): Promise<void> {
    while (this.isBusy) await this.idle()
    if (this.#failure) throw this.#failure.error
  }

  /** The current read may be older than the change, or never end. A halt of another process must not wait for it. */
  #onChangeWhile(reading: ReadingPhase): void {
    if (reading.next === 'nothing') reading.next = 'after-gap'
    if (!reading.isAsking || reading.isReplacement) return
    reading.timer ??= backgroundTimeout(() => this.#read({ isReplacement: true }), PATIENCE_MS)
  }

  #read({ isSecond = false, isReplacement = false } = {}): void {
    const { state, prefix, deadlineMs } = this.#options
    const reading: ReadingPhase = { kind: 'reading', next: 'nothing', isOutdated: false, isReplacement, isAsking: true }
    this.#enter(reading)
    this.#subscribe()
    startTask({
      run: () => state.list(prefix),
      deadlineMs,
      onEnd: (outcome) => {
        if (!this.#isIn(reading)) return
        reading.isAsking = false
        clearTimeout(reading.timer)
        if (reading.isOutdated) reading.next = 'at-once'
        if ('error' in outcome || reading.isOutdated) this.#end(reading, outcome)
        else this.#use(reading, outcome.value, isSecond)
      },
    })
  }

  #use(reading: ReadingPhase, entries: readonly StateEntry[], isSecond: boolean): void {
    const isFirst = !this.#isRead
    let complete: Completion | undefined | void
    try {
      if (!Array.isArray(entries)) throw new TypeError('the state store returned no list')
      this.#isRead = true
      complete = this.#options.onRead(entries, isFirst)
    } catch (error) {
      this.#isRead = !isFirst
      return this.#end(reading, { error })
    }
    if (!complete || isSecond) return this.#end(reading, { value: undefined })
    complete((completed) => {
      if (!this.#isIn(reading)) return
      if ('error' in completed) this.#end(reading, completed)
      else this.#read({ isSecond: true })
    })
  }

  #end(reading: ReadingPhase, outcome: Outcome<unknown>): void {
    if (!this.#isIn(reading)) return
    const wasFailing = this.isFailing
    const ended: Phase = { kind: 'waiting' }
    this.#enter(ended)
    this.#failure = 'error' in outcome ? outcome : undefined
    this.#failures.reading = 'error' in outcome ? this.#failures.reading + 1 : 0
    if ('error' in outcome) this.#options.onFailed(outcome.error, this.#failures.reading)
    else if (wasFailing) this.#options.onRecovered?.()
    // The listener may have started a read or closed this mirror.
    if (!this.#isIn(ended)) return
    if (reading.next === 'at-once' && !this.isFailing) return this.#read()
    this.#waitForGap(reading.next === 'after-gap')
    if (!this.#isReading) this.#resolveIdle()
  }

  #waitForGap(isStale: boolean): void {
    const { gapMs = 0 } = this.#options
    const gap: Gap = { kind: 'gap', isStale }
    const end = () => (gap.isStale ? this.#read() : this.#waitForRetry())
    this.#enter(gap)
    if (gapMs === 0) end()
    else gap.timer = backgroundTimeout(end, gapMs)
  }

  #waitForRetry(): void {
    const { retryMs = RETRY_MS, maxRetryMs = retryMs } = this.#options
    const failures = Math.max(this.#failures.reading, this.#failures.subscribing)
    if (failures === 0) return this.#enter({ kind: 'waiting' })
    const delayMs = backoffMs(failures, { firstMs: retryMs, maxMs: maxRetryMs, random: () => 1 })
    this.#enter({ kind: 'waiting', timer: backgroundTimeout(() => this.#read(), delayMs) })
  }
}
