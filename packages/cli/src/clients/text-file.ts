import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { errnoOf, messageOf } from '@toolgate/values'
import { CliError } from '../exit.ts'
import { printable } from '../io.ts'
import { isTaken } from '../new-file.ts'
import { replaceFile, rewriteFile } from '../replace-file.ts'

/** A strict decoder, because invalid bytes could not be written back. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Returns the text of a file, or `undefined` if it does not exist.
 * @throws {CliError} `usage` for a file that cannot be read
 */
export function readFile(file: string): string | undefined {
  try {
    return UTF8.decode(readFileSync(file))
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT' && !isTaken(file)) return undefined
    if (cause instanceof TypeError) throw new CliError('usage', `${printable(file)} is not UTF-8 text.`, { cause })
    throw new CliError('usage', `${printable(file)} cannot be read (${errnoOf(cause) ?? messageOf(cause)}).`, { cause })
  }
}

/** A change of one file: its text before and after. An absent text means no file. */
export interface FileChange {
  readonly file: string
  readonly before: string | undefined
  readonly after: string | undefined
}

/**
 * Writes all changes, or none. First it compares every file with the text that was read; then it replaces each in one
 * step. A link stays a link, and a file keeps its mode.
 *
 * @throws {CliError} `no` for a file that was changed meanwhile, and for a file that cannot be written
 */
export function writeChanges(changes: readonly FileChange[]): void {
  for (const { file, before } of changes)
    if (readFile(file) !== before)
      throw new CliError('no', `${printable(file)} was changed meanwhile. Nothing was written.`, {
        hint: 'Run the command again.',
        code: 'changed_meanwhile',
      })
  const done: FileChange[] = []
  try {
    for (const change of changes) {
      writeOne(change)
      done.push(change)
    }
  } catch (cause) {
    for (const { file, before, after } of done) writeOne({ file, before: after, after: before })
    const file = changes[done.length]?.file ?? ''
    throw new CliError('no', `${printable(file)} cannot be written (${errnoOf(cause) ?? messageOf(cause)}).`, { cause })
  }
}

function writeOne({ file, before, after }: FileChange): void {
  if (after === undefined) return rmSync(file, { force: true })
  mkdirSync(path.dirname(file), { recursive: true })
  if (before === undefined) return replaceFile(file, after)
  rewriteFile(file, after)
}

export function hashOfText(text: string | undefined): string {
  return text === undefined ? 'absent' : hash('sha256', text, 'hex')
}
