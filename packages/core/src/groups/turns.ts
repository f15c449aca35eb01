type Run = (done: () => void) => void

/** Lets at most so many run at once; the others wait in the order in which they came. */
export interface Turns {
  /**
   * Runs it now or when it is its turn. It must call `done` once. What was late the last time waits in a line of its
   * own, and never takes all places: what hangs holds up nothing that answers.
   */
  take(run: Run, wasLate: boolean): void
}

export function createTurns(max: number, maxLate: number): Turns {
  const prompt = createLine()
  const late = createLine()
  let running = 0
  let runningLate = 0
  let isAdvancing = false
  const begin = (run: Run, isLate: boolean) => {
    running++
    if (isLate) runningLate++
    run(() => {
      running--
      if (isLate) runningLate--
      advance()
    })
  }
  /** One place is kept for the late where both wait: neither keeps the other waiting for ever. */
  const nextLine = () => {
    if (running >= max) return undefined
    const mayBeLate = late.size() > 0 && runningLate < maxLate
    if (mayBeLate && (runningLate === 0 || prompt.size() === 0)) return late
    return prompt.size() > 0 ? prompt : undefined
  }
  const advance = () => {
    // What is over at once is followed by the loop that began it, not from within itself.
    if (isAdvancing) return
    isAdvancing = true
    for (let line = nextLine(); line; line = nextLine()) begin(line.next(), line === late)
    isAdvancing = false
  }
  return {
    take(run, wasLate) {
      ;(wasLate ? late : prompt).add(run)
      advance()
    },
  }
}

/** First come, first served, in constant time however long it is. */
function createLine() {
  const waiting: Run[] = []
  let first = 0
  return {
    size: () => waiting.length - first,
    add: (run: Run) => void waiting.push(run),
    next(): Run {
      const run = waiting[first++] as Run
      if (first === waiting.length) {
        waiting.length = 0
        first = 0
      }
      return run
    },
  }
}
