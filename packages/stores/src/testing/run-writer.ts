import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { killAfterLines } from './kill-after-lines.ts'
import type { Format } from './open-any.ts'

interface WriterRun {
  readonly format: Format
  readonly mode: 'batched' | 'required'
  readonly path: string
  readonly name: string
  readonly count: number
  /** The number of acknowledged calls after which the writer is killed. */
  readonly killAfter?: number
  /** The largest size of its files, in blocks of 512 bytes. */
  readonly fileBlocks?: number
}

interface WriterResult {
  /** The acknowledged `tool_call_id`s, in order. */
  readonly acknowledged: readonly string[]
  /** How it ended: `well`, the code of an error, or `undefined` if it was killed. */
  readonly end: string | undefined
}

const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url))

/** Runs `writer.ts` in a separate process. */
export async function runWriter({ killAfter, fileBlocks, ...run }: WriterRun): Promise<WriterResult> {
  const { format, mode, path, name, count } = run
  const node = [process.execPath, '--conditions=toolgate-source', WRITER, format, mode, path, name, String(count)]
  const limit = fileBlocks === undefined ? '' : `ulimit -f ${fileBlocks};`
  const child = spawn('/bin/sh', ['-c', `${limit} exec "$@"`, 'sh', ...node], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  if (killAfter !== undefined) killAfterLines(child, killAfter)
  await new Promise((resolve) => child.once('close', resolve))
  // The text after the last line break is an incomplete line.
  const lines = output.split('\n').slice(0, -1)
  const end = lines.find((line) => line.startsWith('end '))?.slice('end '.length)
  return { acknowledged: lines.filter((line) => !line.startsWith('end ')), end }
}
