import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { randomInt } from 'node:crypto'

/** What a thread compares: at least so many cases, from a seed. */
export interface Share {
  readonly cases: number
  readonly seed: number
}

/** Has a module, run in each of as many threads as there are cores, compare its part of some cases. Returns how many were. */
export async function compareInThreads(module: string, cases: number): Promise<number> {
  const threads = availableParallelism()
  const shares = Array.from({ length: threads }, () => ({
    cases: Math.ceil(cases / threads),
    seed: randomInt(2 ** 31),
  }))
  const compared = await Promise.all(shares.map((share) => compareInThread(module, share)))
  return compared.reduce((sum, count) => sum + count, 0)
}

/** @throws the difference, with the case it was found in */
function compareInThread(module: string, share: Share): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(module), { workerData: share })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)))
  })
}
