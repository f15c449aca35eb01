import { catchRejection } from '@toolgate/values'

/**
 * Runs work exactly once, inside a function that should call it, and returns or throws the work's result. The work also
 * runs if the function throws or does not call it; `onFault` receives the error.
 */
export function runOnce<T>(
  through: (step: () => void) => unknown,
  work: () => T,
  onFault: (error: unknown) => void,
): T {
  let done: StepEnd<T> | undefined
  const once = (): StepEnd<T> => (done ??= attempt(work))
  try {
    catchRejection(
      through(() => void once()),
      onFault,
    )
  } catch (error) {
    onFault(error)
  }
  // A later call returns the same result.
  const first = once()
  if ('thrown' in first) throw first.thrown
  return first.value
}

type StepEnd<T> = { readonly value: T } | { readonly thrown: unknown }

function attempt<T>(work: () => T): StepEnd<T> {
  try {
    return { value: work() }
  } catch (thrown) {
    return { thrown }
  }
}
