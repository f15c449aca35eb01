import type { Clock } from '../ports/ports.ts'

/** The clocks of this process. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
}

/** Returns a clock whose monotonic time never goes back. If the given clock goes back, time continues from there. */
export function steadyClock(clock: Clock): Clock {
  let latestMs = Number.NEGATIVE_INFINITY
  let lostMs = 0
  return {
    monotonicMs() {
      const nowMs = clock.monotonicMs() + lostMs
      if (nowMs < latestMs) {
        lostMs += latestMs - nowMs
        return latestMs
      }
      if (nowMs > latestMs) latestMs = nowMs
      return nowMs
    },
    wallMs: () => clock.wallMs(),
  }
}
