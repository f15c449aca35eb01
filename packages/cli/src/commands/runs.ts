import type { RunRow } from '@toolgate/gateway'
import { createApi, findTarget, type TargetOptions } from '../client.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'
import { renderTable } from '../table.ts'

export interface RunsOptions extends TargetOptions {
  readonly user?: string
  readonly limit?: number
  readonly json?: boolean
}

/** `toolgate runs list`: prints the runs that hosts have started and that go on, newest first. */
export async function runsCommand({ user, limit, ...options }: RunsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io.env)).runs({
    ...(user !== undefined && { user }),
    ...(limit !== undefined && { limit }),
  })
  const { runs, total } = body
  if (options.json) printJson(io.stdout, body)
  else if (total === 0) printLine(io.stdout, 'No run goes on.')
  else {
    printLine(
      io.stdout,
      renderTable(['ID', 'FOR', 'STARTED BY', 'PARENT', 'ENDS', 'NARROWED BY'], runs.map(cellsOf), io.stdout),
    )
    if (runs.length < total) printLine(io.stdout, `${count(total - runs.length, 'older run')} not shown: --limit`)
  }
  return 'ok'
}

function cellsOf({ id, user, tenant, host = '', parent = '', expiresAt, narrows = '' }: RunRow): string[] {
  const who = tenant === undefined ? user : `${user} of ${tenant}`
  return [id, who, host, parent, new Date(expiresAt).toISOString(), narrows].map(printable)
}

/** `toolgate runs revoke <id>`: its token opens nothing from then on, nor do those below it. */
export async function revokeRunCommand(id: string, options: RunsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io.env)).endRun(id)
  if (options.json) printJson(io.stdout, body)
  else
    printLine(
      io.stdout,
      `${painter(io.stdout, io.env)('red', 'revoked')}  ${printable(body.id)}, and the runs below it`,
    )
  return 'ok'
}
