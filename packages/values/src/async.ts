import type { Cancelling } from './cancelling.ts'
import type { Deadlines, Timed, Watched } from './deadlines.ts'

/** Thrown when no answer came by the deadline. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
  readonly deadlineMs: number

  constructor(deadlineMs: number) {
    super(`no answer in ${deadlineMs / 1000} s`)
    this.deadlineMs = deadlineMs
  }
}

/** Thrown when the caller stopped waiting. `cause` is the reason of the abort. */
export class AbortedError extends Error {
  override readonly name = 'AbortedError'

  constructor(reason: unknown) {
    super('the caller went away', { cause: reason })
  }
}

/**
 * Returns the value of a promise, if it resolves before the deadline and before an abort.
 *
 * A later answer is dropped, and a later rejection is not unhandled. The work itself continues. Accepts any thenable; if
 * its `then` throws, the result rejects.
 *
 * @throws {TimeoutError} after `deadlineMs`
 * @throws {AbortedError} when `cancelling` aborts before
 */
export function withDeadline<T>(
  answer: PromiseLike<T>,
  deadlines: Deadlines,
  clock: { monotonicMs(): number },
  deadlineMs: number,
  cancelling?: Cancelling,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const wait = new Wait(resolve, reject, deadlines, deadlineMs)
    // Inside the executor, because a foreign thenable may throw when its `then` is read.
    Promise.resolve(answer).then(
      (value) => wait.settle(value),
      (error: unknown) => wait.fail(error),
    )
    wait.start(clock.monotonicMs(), cancelling)
  })
}

/** The result of work. Its error is a `TimeoutError` if the work took too long. */
export type Outcome<T> = { readonly value: T } | { readonly error: unknown }

interface TimedTask<T> {
  run(signal: AbortSignal): T | PromiseLike<T>
  readonly deadlineMs: number
  /** Called once, and synchronously if the work is synchronous. Not called after `stop`. */
  readonly onEnd: (outcome: Outcome<T>) => void
  /** Called when the work itself has ended, even after the deadline. */
  readonly onOver?: () => void
}

/** Starts work that has a deadline. Returns a function that stops it. Work that ignores its signal is left behind. */
export function startTask<T>({ run, deadlineMs, onEnd, onOver }: TimedTask<T>): () => void {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isWaiting = true
  const end = (outcome: Outcome<T>) => {
    if (!isWaiting) return
    isWaiting = false
    clearTimeout(timer)
    onEnd(outcome)
  }
  const over = (outcome: Outcome<T>) => {
    onOver?.()
    end(outcome)
  }
  let answer: T | PromiseLike<T>
  try {
    answer = run(controller.signal)
    // Waiting for a thenable may throw.
    if (isThenable(answer)) answer = Promise.resolve(answer)
  } catch (error) {
    over({ error })
    return () => {}
  }
  if (isThenable(answer)) {
    timer = setTimeout(() => {
      const late = new TimeoutError(deadlineMs)
      end({ error: late })
      controller.abort(late)
    }, deadlineMs)
    answer.then(
      (value) => over({ value }),
      (error: unknown) => over({ error }),
    )
  } else {
    over({ value: answer })
  }
  return () => {
    isWaiting = false
    clearTimeout(timer)
    controller.abort(new AbortedError('the work was stopped'))
  }
}

/** Runs work that has a deadline. @throws {TimeoutError} after `deadlineMs` */
export function runWithDeadline<T>(run: TimedTask<T>['run'], deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const onEnd = (outcome: Outcome<T>) => ('value' in outcome ? resolve(outcome.value) : reject(outcome.error))
    startTask({ run, deadlineMs, onEnd })
  })
}

/** Resolves with whether a promise resolves within a time. Rejects if the promise rejects in that time. */
export function endsWithin(work: PromiseLike<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, false)
    work.then(() => resolve(true), reject).then(() => clearTimeout(timer))
  })
}

/** Returns whether a value must be awaited. Rethrows an error of reading its `then`. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T>
export function isThenable(value: unknown): value is PromiseLike<unknown>
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return 'then' in value && typeof value.then === 'function'
}

/** Handles the rejection of a promise that is not awaited, because an unhandled rejection would end the process. */
export function catchRejection(answer: unknown, onFault: (error: unknown) => void = () => {}): void {
  if (answer instanceof Promise) answer.catch(onFault)
}

/** Returns a listener whose exceptions and rejections go to `onFault`, so that the caller is not affected. */
export function safely<Message extends readonly unknown[]>(
  listener: ((...message: Message) => unknown) | undefined,
  onFault: (error: unknown) => void = () => {},
): (...message: Message) => void {
  return (...message) => {
    try {
      catchRejection(listener?.(...message), onFault)
    } catch (error) {
      onFault(error)
    }
  }
}

/**
 * Returns how long to wait after a number of failures in a row: half to all of a delay that doubles each time.
 *
 * The half is random, so that parts that failed together do not retry together.
 */
export function backoffMs(
  failures: number,
  { firstMs = 1000, maxMs = 60_000, random = Math.random }: BackoffOptions = {},
): number {
  return Math.min(firstMs * 2 ** Math.min(failures - 1, 30), maxMs) * (0.5 + random() / 2)
}

export interface BackoffOptions {
  /** Default 1000. */
  readonly firstMs?: number
  /** Default 60,000. */
  readonly maxMs?: number
  /** Returns a number from 0 up to 1. Default `Math.random`. */
  readonly random?: () => number
}

class Wait<T> implements Timed {
  readonly #resolve: (value: T) => void
  readonly #reject: (error: unknown) => void
  readonly #deadlines: Deadlines
  readonly #deadlineMs: number
  #watched: Watched | undefined
  #unlisten: (() => void) | undefined

  constructor(resolve: (value: T) => void, reject: (error: unknown) => void, deadlines: Deadlines, deadlineMs: number) {
    this.#resolve = resolve
    this.#reject = reject
    this.#deadlines = deadlines
    this.#deadlineMs = deadlineMs
  }

  start(nowMs: number, cancelling: Cancelling | undefined): void {
    if (cancelling?.aborted) return this.#reject(new AbortedError(cancelling.reason))
    this.#watched = this.#deadlines.watch(this, nowMs, this.#deadlineMs)
    this.#unlisten = cancelling?.onAbort(() => this.fail(new AbortedError(cancelling.reason)))
  }

  expire(): void {
    this.fail(new TimeoutError(this.#deadlineMs))
  }

  settle(value: T): void {
    this.#end()
    this.#resolve(value)
  }

  fail(error: unknown): void {
    this.#end()
    this.#reject(error)
  }

  #end(): void {
    if (this.#watched) this.#deadlines.unwatch(this.#watched)
    this.#watched = undefined
    this.#unlisten?.()
    this.#unlisten = undefined
  }
}

/** Starts a timer that does not keep the process running. In workerd a timer is a number and has no `unref`. */
export function backgroundTimeout(work: () => void, ms: number): NodeJS.Timeout {
  const timer = setTimeout(work, ms)
  timer.unref?.()
  return timer
}

/**
 * Calls `next` with a value now, or with a promise's value when it resolves.
 *
 * So a call through synchronous stores costs no turn of the event loop.
 */
export function chain<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  // oxlint-disable-next-line promise/no-callback-in-promise -- `next` is a step, not a callback
  return value instanceof Promise ? value.then(next) : next(value)
}
