import { ToolgateError } from '../errors.ts'
import type { MaybePromise } from '../ports.ts'

export type StoreResult<T> = { readonly value: T } | { readonly error: unknown }

/**
 * Asks a store and hands on its answer, once: at once where the store answers at once, and an error where it
 * throws, rejects or has not answered by the deadline. A later answer is nobody's.
 */
export function ask<T>(deadlineMs: number, work: () => MaybePromise<T>, done: (answer: StoreResult<T>) => void): void {
  let given: MaybePromise<T>
  try {
    given = work()
    // What can be waited for may throw when it is.
    if (isPromise(given)) given = Promise.resolve(given)
  } catch (error) {
    done({ error })
    return
  }
  if (!isPromise(given)) {
    done({ value: given })
    return
  }
  let isOver = false
  const end = (answer: StoreResult<T>) => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    done(answer)
  }
  const timer = setTimeout(() => {
    end({ error: new ToolgateError('state_unavailable', `The state store has not answered within ${deadlineMs} ms.`) })
  }, deadlineMs)
  given.then(
    (value) => end({ value }),
    (error: unknown) => end({ error }),
  )
}

function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
