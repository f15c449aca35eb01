import type { Cancelling } from '../cancelling.ts'
import type { Clock } from '../ports.ts'
import type { Deadlines, Timed, Watched } from '../deadlines.ts'

/** Something did not answer by its deadline. */
export class LateError extends Error {
  override readonly name = 'LateError'
  readonly deadlineMs: number

  constructor(deadlineMs: number) {
    super(`no answer in ${deadlineMs / 1000} s`)
    this.deadlineMs = deadlineMs
  }
}

/** Nobody waits any longer; `cause` is the reason of the abort. */
export class GoneError extends Error {
  override readonly name = 'GoneError'

  constructor(reason: unknown) {
    super('the caller went away', { cause: reason })
  }
}

/**
 * Gives what a promise gives, if it comes in time and somebody still waits for it.
 *
 * What it says later is dropped, and a late rejection is not unhandled. The wait itself does not end the work: whoever
 * was asked goes on. Anything with a `then` will do; one that throws in it rejects.
 *
 * @throws {LateError} after `deadlineMs`
 * @throws {GoneError} when `cancelling` aborts before
 */
export function inTime<T>(
  answer: PromiseLike<T>,
  deadlines: Deadlines,
  clock: Pick<Clock, 'monotonicMs'>,
  deadlineMs: number,
  cancelling?: Cancelling,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const wait = new Wait(resolve, reject, deadlines, deadlineMs)
    // In here, as what is no promise of ours may throw when it is looked at.
    Promise.resolve(answer).then(
      (value) => wait.settle(value),
      (error: unknown) => wait.fail(error),
    )
    wait.start(clock.monotonicMs(), cancelling)
  })
}

/** Answers whether a value must be waited for; throws what looking at its `then` throws. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T>
export function isThenable(value: unknown): value is PromiseLike<unknown>
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return typeof (value as { then?: unknown }).then === 'function'
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
    if (cancelling?.aborted) return this.#reject(new GoneError(cancelling.reason))
    this.#watched = this.#deadlines.watch(this, nowMs, this.#deadlineMs)
    this.#unlisten = cancelling?.onAbort(() => this.fail(new GoneError(cancelling.reason)))
  }

  expire(): void {
    this.fail(new LateError(this.#deadlineMs))
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
