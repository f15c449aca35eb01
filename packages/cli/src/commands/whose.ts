import { defineCaller, ToolgateError } from '@toolgate/core'
import type { Whose } from '../client/api.ts'
import { CliError } from '../exit.ts'

export interface WhoseOptions {
  readonly as?: string
  readonly caller?: string
  readonly app?: string
}

/**
 * Reads `--as <user>` or `--caller <json>`, with `--app <app>`; gives `undefined` for neither.
 *
 * @throws {CliError} `usage` for both, for an app alone, and for JSON that is no caller
 */
export function findWhose({ as, caller, app }: WhoseOptions): Whose | undefined {
  if (as !== undefined && caller !== undefined) throw new CliError('usage', 'Give --as or --caller, not both.')
  const within = app === undefined ? {} : { app }
  if (caller !== undefined) return { caller: JSON.stringify(parseCaller(caller)), ...within }
  if (as !== undefined) return { as, ...within }
  if (app !== undefined)
    throw new CliError('usage', 'Say whose view of the app is meant, with --as <user> or --caller <json>.')
  return undefined
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
