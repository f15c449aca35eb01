/** Work that has a deadline. */
export interface Timed {
  /** Called once, if the work has not ended by its deadline. */
  expire(): void
}

/** The longest that a timer can wait; a longer one would fire at once. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1

export interface Deadlines {
  watch(timed: Timed, nowMs: number, delayMs: number): Watched
  /** Call it when the work has ended. */
  unwatch(watched: Watched): void
}

export interface Watched {
  readonly timed: Timed
  readonly line: DeadlineQueue
  readonly atMs: number
  before: Watched | undefined
  after: Watched | undefined
}

/** Entries with the same delay expire in order of arrival, so they share one queue and one timer. */
interface DeadlineQueue {
  readonly delayMs: number
  first: Watched | undefined
  last: Watched | undefined
  timer: NodeJS.Timeout | undefined
}

/**
 * Creates deadlines for running calls.
 *
 * Watching and unwatching cost a few assignments, because only the first entry of a queue has a timer. A timer that finds
 * nothing to expire is not set again until the next `watch`. `isBackground`: deadlines do not keep the process running.
 */
export function createDeadlines(nowMs: () => number, { isBackground = false } = {}): Deadlines {
  const lines = new Map<number, DeadlineQueue>()

  const lineOf = (delayMs: number): DeadlineQueue => {
    let line = lines.get(delayMs)
    if (!line) lines.set(delayMs, (line = { delayMs, first: undefined, last: undefined, timer: undefined }))
    return line
  }
  const arm = (line: DeadlineQueue, delayMs: number) => {
    line.timer = setTimeout(() => expireLine(line), Math.min(delayMs, MAX_TIMER_MS))
    if (isBackground) line.timer.unref?.()
  }
  const expireLine = (line: DeadlineQueue) => {
    line.timer = undefined
    const now = nowMs()
    while (line.first && line.first.atMs <= now) {
      const { timed } = line.first
      remove(line.first)
      timed.expire()
    }
    if (!line.first) lines.delete(line.delayMs)
    else if (line.timer === undefined) arm(line, Math.max(1, line.first.atMs - now))
  }

  return {
    watch(timed, startedMs, delayMs) {
      const line = lineOf(delayMs)
      const watched: Watched = { timed, line, atMs: startedMs + delayMs, before: line.last, after: undefined }
      if (line.last) line.last.after = watched
      else line.first = watched
      line.last = watched
      if (line.timer === undefined) arm(line, delayMs)
      else if (!watched.before && !isBackground) line.timer.ref?.()
      return watched
    },
    unwatch(watched) {
      remove(watched)
      // An idle line must not keep the process alive.
      if (!watched.line.first) watched.line.timer?.unref?.()
    },
  }
}

function remove(watched: Watched): void {
  const { line, before, after } = watched
  if (before) before.after = after
  else if (line.first === watched) line.first = after
  if (after) after.before = before
  else if (line.last === watched) line.last = before
  watched.before = undefined
  watched.after = undefined
}
