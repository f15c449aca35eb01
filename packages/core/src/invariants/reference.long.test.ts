import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { describe, it } from 'node:test'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { compareWithReference, type DifferentialOptions } from '../testing/differential.ts'

/** A test for each share, since the runner bounds the time of a test. */
const SHARES = 20
const CASES = 50_000

if (isMainThread) {
  describe('the gate beside a naive evaluator, for a million cases', () => {
    for (let share = 1; share <= SHARES; share++)
      it(`differs in none of share ${share} of ${SHARES}`, async () => {
        const threads = availableParallelism()
        const cases = Math.ceil(CASES / threads)
        const compared = await Promise.all(
          Array.from({ length: threads }, async () => compareInThread({ cases, seed: randomInt(2 ** 31) })),
        )
        assert.ok(compared.reduce((sum, count) => sum + count, 0) >= CASES)
      })
  })
} else {
  // Conditions that cannot be decided throw; nobody reads the stacks of a million errors.
  Error.stackTraceLimit = 0
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(await compareWithReference(workerData as DifferentialOptions))
}

/** @throws the difference, with the history it was found in */
function compareInThread(options: DifferentialOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: options })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)))
  })
}
