import { readFileSync } from 'node:fs'
import { messageOf } from '@toolgate/values'
import type { InputsVerdict } from '@toolgate/core/audit'
import { CliError } from '../exit.ts'

/** The text for each status of an audit. */
export const VERDICTS = {
  ok: ['green', 'ok'],
  torn: ['yellow', 'torn'],
  gap: ['red', 'gap'],
  unsigned: ['red', 'unsigned'],
  tampered: ['red', 'tampered'],
} as const

/**
 * The name of the chain in which `toolgate audit open` records, in a shared audit. Each chain has one writer, and only
 * the replica may write to its own.
 */
export const OPENERS_CHAIN = 'toolgate-audit-open'

/** Returns the text of a file that the command line names. @throws {CliError} `usage` */
export function readInput(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new CliError('usage', `The ${what} cannot be read: ${messageOf(cause)}.`, { cause })
  }
}

/** Returns a sentence about the sealed inputs of an audit, or `undefined` if it has none. */
export function inputsText(inputs: InputsVerdict | undefined): string | undefined {
  if (inputs === undefined) return undefined
  const { present, gone, missing, altered } = inputs
  const bad = [missing > 0 && `${missing} missing`, altered > 0 && `${altered} altered`].filter(
    (part) => part !== false,
  )
  return `Sealed inputs: ${[`${present} present`, `${gone} gone by retention`, ...bad].join(', ')}.`
}

/** Returns `1 record`, `2 records`. */
export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
