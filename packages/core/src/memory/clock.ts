import type { Clock } from '../ports.ts'

/** The clocks of this process. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
}
