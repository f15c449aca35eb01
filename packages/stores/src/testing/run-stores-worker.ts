import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { killAfterLines } from './kill-after-lines.ts'

interface StoresWorkerRun {
  readonly job: 'until-killed' | 'compete' | 'hold-lock' | 'set' | 'listen'
  readonly path: string
  readonly name?: string
  /** The number of printed lines after which the worker is killed. */
  readonly killAfter?: number
}

interface StoresWorkerResult {
  /** Returns the lines that begin with a word, in order. */
  said(word: string): readonly string[]
  readonly code: number | null
  /** The text that it wrote to stderr. */
  readonly problem: string
}

const WORKER = fileURLToPath(new URL('stores-worker.ts', import.meta.url))

/** Runs `stores-worker.ts` in a separate process. */
export async function runStoresWorker({
  job,
  path,
  name = '',
  killAfter,
}: StoresWorkerRun): Promise<StoresWorkerResult> {
  const args = ['--conditions=toolgate-source', WORKER, job, path, name]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let problem = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problem += text
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  if (killAfter !== undefined) killAfterLines(child, killAfter)
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve)
  })
  // The text after the last line break is an incomplete line.
  const lines = output.split('\n').slice(0, -1)
  return {
    said: (word) => lines.filter((line) => line.split(' ', 1)[0] === word).map((line) => line.slice(word.length + 1)),
    code,
    problem,
  }
}
