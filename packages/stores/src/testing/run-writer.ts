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
  /** Kills it once it has acknowledged so many calls. */
  readonly killAfter?: number
  /** Lets no file grow beyond so many blocks of 512 bytes. */
  readonly fileBlocks?: number
}

interface WriterResult {
  /** The `tool_call_id`s that were acknowledged, in that order. */
  readonly acknowledged: readonly string[]
  /** `well`, the code of the error that ended it, or nothing when it was killed. */
  readonly end: string | undefined
}

const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url))

/** Runs `writer.ts` in a process of its own. */
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
  // What follows the last line break was not fully said.
  const lines = output.split('\n').slice(0, -1)
  const end = lines.find((line) => line.startsWith('end '))?.slice('end '.length)
  return { acknowledged: lines.filter((line) => !line.startsWith('end ')), end }
}
