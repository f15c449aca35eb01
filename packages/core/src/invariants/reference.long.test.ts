import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { compareWithReference, type DifferentialOptions } from '../../../testing/support/differential.ts'
import { compareInThreads } from '../../../testing/support/in-threads.ts'

/** A test for each share, since the runner bounds the time of a test. */
const SHARES = 20
const CASES = 50_000

if (isMainThread) {
  describe('the gate beside a naive evaluator, for a million cases', () => {
    for (let share = 1; share <= SHARES; share++)
      it(`differs in none of share ${share} of ${SHARES}`, async () =>
        assert.ok((await compareInThreads(import.meta.url, CASES)) >= CASES))
  })
} else {
  // Conditions that cannot be decided throw; nobody reads the stacks of a million errors.
  Error.stackTraceLimit = 0
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(await compareWithReference(workerData as DifferentialOptions))
}
