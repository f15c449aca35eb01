import type { RunRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'
import { renderTable } from '../table.ts'

export interface RunsOptions extends TargetOptions {
  readonly user?: string
  readonly label?: string
  readonly all?: boolean
  readonly limit?: number
  readonly json?: boolean
}

const COLUMNS = ['ID', 'FOR', 'STARTED BY', 'STARTED', 'CALLS', 'REFUSED', 'LABELS', 'PARENT', 'ENDS', 'NARROWED BY']

/**
 * `toolgate runs list`: prints the active runs, or with `--all` those of the last week. Runs with the latest calls come
 * first.
 */
export async function runsCommand(
  { user, label, all = false, limit, ...options }: RunsOptions,
  io: Io,
): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).runs({
    ...(user !== undefined && { user }),
    ...(label !== undefined && { label }),
    ...(!all && { state: 'open' }),
    ...(limit !== undefined && { limit }),
  })
  const { runs, total } = body
  if (options.json) printJson(io.stdout, body)
  else if (total === 0) printLine(io.stdout, noneText(all, user !== undefined || label !== undefined))
  else {
    printLine(io.stdout, renderTable(COLUMNS, runs.map(cellsOf), io.stdout))
    if (runs.length < total) printLine(io.stdout, `${count(total - runs.length, 'older run')} not shown: --limit`)
  }
  return 'ok'
}

function noneText(all: boolean, isFiltered: boolean): string {
  const which = isFiltered ? 'No such run' : 'No run'
  return all ? `${which} in the last week.` : `${which} goes on. --all shows those that have ended.`
}

function cellsOf(row: RunRow): string[] {
  const { id, user = '', tenant, host = '', startedAt, calls, refused, labels, parent = '', narrows = '' } = row
  const who = tenant === undefined ? user : `${user} of ${tenant}`
  const [started, ends] = [toTime(startedAt), toTime(row.endedAt ?? row.expiresAt)]
  return [id, who, host, started, `${calls}`, `${refused}`, labels.join(' '), parent, ends, narrows].map(printable)
}

function toTime(ms: number | undefined): string {
  return ms === undefined ? '' : new Date(ms).toISOString()
}

/** `toolgate runs revoke <id>`: revokes a run's token and those of the runs below it. */
export async function revokeRunCommand(id: string, options: RunsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).endRun(id)
  if (options.json) printJson(io.stdout, body)
  else
    printLine(
      io.stdout,
      `${painter(io.stdout, io.env)('red', 'revoked')}  ${printable(body.id)}, and the runs below it`,
    )
  return 'ok'
}
