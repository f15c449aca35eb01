type RunTurn = (done: () => void) => void

/** Limits how many run at once. The others wait in the order of arrival. */
export interface Turns {
  /**
   * Calls `run` now, or when it is its turn. It must call `done` once. Work that timed out the last time waits in a
   * queue of its own and never takes all places, so that it cannot block other work.
   */
  take(run: RunTurn, wasLate: boolean): void
}

export function createTurns(max: number, maxLate: number): Turns {
  const prompt = createLine()
  const late = createLine()
  let running = 0
  let runningLate = 0
  let isAdvancing = false
  const begin = (run: RunTurn, isLate: boolean) => {
    running++
    if (isLate) runningLate++
    run(() => {
      running--
      if (isLate) runningLate--
      advance()
    })
  }
  /** One place is kept for late work if both queues wait, so that neither starves. */
  const nextLine = () => {
    if (running >= max) return undefined
    const mayBeLate = late.size() > 0 && runningLate < maxLate
    if (mayBeLate && (runningLate === 0 || prompt.size() === 0)) return late
    return prompt.size() > 0 ? prompt : undefined
  }
  const advance = () => {
    // Work that ends synchronously must not start another loop, because the loop that started the work continues.
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

/** A queue with constant-time operations. */
function createLine() {
  const waiting: RunTurn[] = []
  let first = 0
  return {
    size: () => waiting.length - first,
    add: (run: RunTurn) => void waiting.push(run),
    next(): RunTurn {
      const run = waiting[first++] as RunTurn
      if (first === waiting.length) {
        waiting.length = 0
        first = 0
      }
      return run
    },
  }
}
