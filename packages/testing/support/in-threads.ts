import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { randomInt } from 'node:crypto'

/** A thread's part of a comparison: at least this many cases, from this seed. */
export interface Share {
  readonly cases: number
  readonly seed: number
}

/** Runs a module in one thread for each core, each with a part of the cases. Returns the number of compared cases. */
export async function compareInThreads(module: string, cases: number): Promise<number> {
  const threads = availableParallelism()
  const shares = Array.from({ length: threads }, () => ({
    cases: Math.ceil(cases / threads),
    seed: randomInt(2 ** 31),
  }))
  const compared = await Promise.all(shares.map((share) => compareInThread(module, share)))
  return compared.reduce((sum, count) => sum + count, 0)
}

/** Runs a thread's comparison. @throws the difference, with its case */
function compareInThread(module: string, share: Share): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(module), { workerData: share })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)))
  })
}
