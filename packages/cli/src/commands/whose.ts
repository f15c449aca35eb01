import { defineCaller, ToolgateError } from '@toolgate/core'
import type { Whose } from '../client/api.ts'
import { CliError } from '../exit.ts'

export interface WhoseOptions {
  readonly as?: string
  readonly caller?: string
}

/**
 * Reads `--as <user>` or `--caller <json>`; gives `undefined` for neither.
 *
 * @throws {CliError} `usage` for both, and for JSON that is no caller
 */
export function findWhose({ as, caller }: WhoseOptions): Whose | undefined {
  if (as !== undefined && caller !== undefined) throw new CliError('usage', 'Give --as or --caller, not both.')
  if (caller !== undefined) return { caller: JSON.stringify(parseCaller(caller)) }
  return as === undefined ? undefined : { as }
}

function parseCaller(text: string): unknown {
  try {
    return defineCaller(JSON.parse(text) as object)
  } catch (cause) {
    const problem = cause instanceof ToolgateError ? cause.message : 'it is not JSON'
    throw new CliError('usage', `--caller cannot be used: ${problem}.`, {
      hint: `Such as: --caller '{"user":"vera","roles":["viewer"]}'`,
      cause,
    })
  }
}
