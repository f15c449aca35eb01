import type { TestContext } from 'node:test'
import { type ManualClock, manualClock } from '../src/manual-clock.ts'

export interface ManualTime {
  readonly clock: ManualClock
  /** Advances the time in small steps, and runs the timers that are due in each. */
  pass(ms: number): Promise<void>
}

const STEP_MS = 10

/** Returns a clock and replaces the process's timers. Both stand still until they are advanced. */
export function manualTime(test: TestContext): ManualTime {
  test.mock.timers.enable({ apis: ['setTimeout'] })
  const clock = manualClock()
  return {
    clock,
    async pass(ms) {
      for (let left = ms; left > 0; left -= STEP_MS) {
        const stepMs = Math.min(left, STEP_MS)
        clock.advance(stepMs)
        test.mock.timers.tick(stepMs)
        await new Promise(setImmediate)
      }
    },
  }
}
