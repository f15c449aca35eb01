import { readFileSync } from 'node:fs'
import { messageOf } from '@toolgate/core/internal'
import { CliError } from '../exit.ts'

/** How the statuses of an audit are printed. */
export const VERDICTS = {
  ok: ['green', 'ok'],
  torn: ['yellow', 'torn'],
  gap: ['red', 'gap'],
  unsigned: ['red', 'unsigned'],
  tampered: ['red', 'tampered'],
} as const

/** Returns the text of a file that the command line names. @throws {CliError} `usage` */
export function readInput(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new CliError('usage', `The ${what} cannot be read: ${messageOf(cause)}.`, { cause })
  }
}

/** Returns `1 record`, `2 records`. */
export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
