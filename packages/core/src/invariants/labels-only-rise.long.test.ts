import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { compareGate } from '../../../testing/support/run-gate-differential.ts'
import { compareRules } from '../../../testing/support/run-differential.ts'
import { compareInThreads, type Share } from '../../../testing/support/in-threads.ts'

/** A test for each share, since the runner bounds the time of a test. */
const SHARES = 20
const CASES = 50_000

if (isMainThread) {
  describe('rules about what happened beside a naive evaluator, for a million traces', () => {
    for (let share = 1; share <= SHARES; share++)
      it(`differs in none of share ${share} of ${SHARES}`, async () =>
        assert.ok((await compareInThreads(import.meta.url, CASES)) >= CASES))
  })
} else {
  // Conditions that cannot be decided throw; nobody reads the stacks of a million errors.
  Error.stackTraceLimit = 0
  const { cases, seed } = workerData as Share
  const compared = compareRules({ cases: cases / 2, seed }) + (await compareGate({ cases: cases / 2, seed }))
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(compared)
}
