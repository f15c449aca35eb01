import type { MaybePromise } from '../ports.ts'

/**
 * Goes on with a value now, or with a promise's value when it comes.
 *
 * A call through stores that answer at once then costs no turn of the event loop.
 */
export function chain<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  // oxlint-disable-next-line promise/no-callback-in-promise -- `next` is a step, not a callback
  return value instanceof Promise ? value.then(next) : next(value)
}
