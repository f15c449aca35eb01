import type { TestContext } from 'node:test'
import { type ManualClock, manualClock } from '../src/manual-clock.ts'

export interface ManualTime {
  readonly clock: ManualClock
  /** Lets time go by, in small steps, with all that is due in each. */
  pass(ms: number): Promise<void>
}

const STEP_MS = 10

/** Gives a clock and the timers of the process, both of which go on only when they are told to. */
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
