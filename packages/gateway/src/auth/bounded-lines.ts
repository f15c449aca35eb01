import type { Clock } from '@toolgate/core/stores'

const WINDOW_MS = 60_000

/**
 * Returns a log that writes at most `max` lines a minute, so that no client can flood it. The next line states how many
 * were dropped.
 */
export function boundLines(
  log: (message: string) => void,
  clock: Pick<Clock, 'monotonicMs'>,
  max: number = 10,
): (message: string) => void {
  let beganMs = Number.NEGATIVE_INFINITY
  let count = 0
  return (message) => {
    const nowMs = clock.monotonicMs()
    const isNew = nowMs - beganMs >= WINDOW_MS
    const leftOut = isNew ? Math.max(0, count - max) : 0
    if (isNew) [beganMs, count] = [nowMs, 0]
    if (++count <= max) log(leftOut === 0 ? message : `${message} (and ${leftOut} lines before, left out)`)
  }
}
