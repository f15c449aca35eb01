/**
 * Runs work through somebody who should call it, exactly once, and gives or throws what it does. One who throws,
 * or calls nothing, is told to `onFault` and changes nothing.
 */
export function runOnce<T>(through: (step: () => void) => void, work: () => T, onFault: (error: unknown) => void): T {
  const done: Done<T>[] = []
  try {
    through(() => {
      if (done.length === 0) done.push(attempt(work))
    })
  } catch (error) {
    onFault(error)
  }
  const [first = attempt(work)] = done
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
