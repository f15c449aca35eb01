import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const WORKER = fileURLToPath(new URL('limit-worker.ts', import.meta.url))
const run = promisify(execFile)

interface Competition {
  readonly engine: 'redis' | 'postgres'
  readonly url: string
  readonly processes: number
  readonly max: number
  /** The number of takes that each process tries. */
  readonly tries: number
}

/** Runs processes that take from one limit at once, and returns the total number of allowed takes. */
export async function compete({ engine, url, processes, max, tries }: Competition): Promise<number> {
  const args = ['--conditions=toolgate-source', WORKER, engine, url, String(max), String(tries)]
  const all = await Promise.all(Array.from({ length: processes }, () => run(process.execPath, args)))
  return all.reduce((sum, { stdout }) => sum + Number(stdout), 0)
}
