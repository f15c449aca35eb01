import { endsWithin } from '@toolgate/values'
import type { ServerLogRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, jsonText, painter, printable, printLine } from '../io.ts'
import type { StopSignals } from '../stop-signals.ts'

export interface LogsOptions extends TargetOptions {
  readonly lines: number
  readonly follow?: boolean
  readonly json?: boolean
}

const POLL_MS = 1_000

/** `toolgate logs <server>`: prints the last lines of a server: its stderr, and the gateway's log about it. */
export async function logsCommand(
  server: string,
  options: LogsOptions,
  io: Io,
  signals: StopSignals,
): Promise<ExitName> {
  const api = createApi(findTarget(options, io))
  const print = (row: ServerLogRow) => printLine(io.stdout, options.json ? jsonText(row) : lineOf(row, io))
  const { lines } = await api.logs(server, { limit: options.lines })
  for (const line of lines) print(line)
  if (!options.follow) return 'ok'
  let after = lines.at(-1)?.seq ?? 0
  const { stopped, release } = signals.once()
  try {
    while (!(await endsWithin(stopped, POLL_MS))) {
      const { lines: fresh } = await api.logs(server, { after })
      for (const line of fresh) print(line)
      after = fresh.at(-1)?.seq ?? after
    }
  } finally {
    release()
  }
  return 'ok'
}

const STYLES = { stderr: 'reset', debug: 'dim', info: 'dim', warn: 'yellow', error: 'red' } as const

function lineOf({ wallMs, level, user, text }: ServerLogRow, io: Io): string {
  const paint = painter(io.stdout, io.env)
  const whose = user === undefined ? '' : `${printable(user)}  `
  return `${paint('dim', new Date(wallMs).toISOString())}  ${paint(STYLES[level], level.padEnd(6))}  ${whose}${printable(text)}`
}
