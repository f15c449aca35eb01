import type { Clock } from '@toolgate/core/stores'

export interface ManualClock extends Clock {
  advance(ms: number): void
}

/**
 * Returns a clock that stands still until it is advanced. Its wall-clock and monotonic times both start at `startMs`.
 */
export function manualClock(startMs = 1_000_000): ManualClock {
  let nowMs = startMs
  return {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
  }
}
