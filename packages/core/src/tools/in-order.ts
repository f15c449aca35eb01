const MAX_ROUNDS = 8

/** Returns a function that runs again, up to eight times, if it is called while it runs. */
export function oneAtATime(run: () => void): () => void {
  let running = false
  let again = false
  return () => {
    again = true
    if (running) return
    running = true
    try {
      for (let round = 0; again && round < MAX_ROUNDS; round++) {
        again = false
        run()
      }
    } finally {
      running = false
    }
  }
}

/** Emits values one after the other, also when a listener causes the next one. */
export function inOrder<T extends object>(emit: (value: T) => void): (value: T) => void {
  const waiting: T[] = []
  let isEmitting = false
  return (value) => {
    waiting.push(value)
    if (isEmitting) return
    isEmitting = true
    try {
      for (let next = waiting.shift(); next; next = waiting.shift()) emit(next)
    } finally {
      isEmitting = false
    }
  }
}
