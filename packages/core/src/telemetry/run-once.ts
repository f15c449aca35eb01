import { catchRejection } from '../util/async.ts'

/**
 * Runs work through somebody who should call it, exactly once, and gives or throws what it does. One who throws,
 * or calls nothing, is told to `onFault` and changes nothing.
 */
export function runOnce<T>(
  through: (step: () => void) => unknown,
  work: () => T,
  onFault: (error: unknown) => void,
): T {
  let done: Done<T> | undefined
  const once = (): Done<T> => (done ??= attempt(work))
  try {
    catchRejection(
      through(() => void once()),
      onFault,
    )
  } catch (error) {
    onFault(error)
  }
  // One who calls it too late finds it done.
  const first = once()
  if ('thrown' in first) throw first.thrown
  return first.value
}

type Done<T> = { readonly value: T } | { readonly thrown: unknown }

function attempt<T>(work: () => T): Done<T> {
  try {
    return { value: work() }
  } catch (thrown) {
    return { thrown }
  }
}
