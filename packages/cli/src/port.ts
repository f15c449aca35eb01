import { CliError } from './exit.ts'
import type { Io } from './io.ts'

/**
 * Gives the port that `--port` or else PORT names; `undefined` where neither does.
 *
 * @throws {CliError} `usage` for one that is no port, naming where it came from
 */
export function findPort(option: string | undefined, env: Io['env']): number | undefined {
  if (option !== undefined) return parsePort('--port', option)
  return env['PORT'] ? parsePort('PORT', env['PORT']) : undefined
}

function parsePort(origin: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new CliError(
    'usage',
    `${origin} is ${JSON.stringify(text)}, which is no port: a whole number from 0 (any free one) to 65535.`,
  )
}
