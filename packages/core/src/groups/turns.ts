/** Lets at most so many run at once; the others wait in the order in which they came. */
export interface Turns {
  /** Runs it now or when it is its turn. It must call `done` once. */
  take(run: (done: () => void) => void): void
}

export function createTurns(max: number): Turns {
  const waiting: ((done: () => void) => void)[] = []
  let next = 0
  let running = 0
  let isAdvancing = false
  const begin = (run: (done: () => void) => void) => {
    running++
    run(() => {
      running--
      advance()
    })
  }
  const hasNext = () => running < max && next < waiting.length
  const advance = () => {
    // What is over at once is followed by the loop that began it, not from within itself.
    if (isAdvancing) return
    isAdvancing = true
    while (hasNext()) begin(waiting[next++] as (done: () => void) => void)
    isAdvancing = false
    if (next === waiting.length) {
      waiting.length = 0
      next = 0
    }
  }
  return {
    take(run) {
      waiting.push(run)
      advance()
    },
  }
}
