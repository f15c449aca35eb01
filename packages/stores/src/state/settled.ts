import type { MaybePromise } from '@toolgate/core'

/** Gives the value after `then` has had it: at once, or when it comes. */
export function settled<T>(value: MaybePromise<T>, then: (value: T) => void): MaybePromise<T> {
  if (!(value instanceof Promise)) {
    then(value)
    return value
  }
  return (async () => {
    const result = await value
    then(result)
    return result
  })()
}
