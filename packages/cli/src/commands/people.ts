import type { PersonRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'

export interface PeopleOptions extends TargetOptions {
  readonly json?: boolean
  readonly text?: string
  readonly tenant?: string
  readonly role?: string
  readonly limit?: number
}

const DEFAULT_LIMIT = 100

/** `toolgate people list`: prints the people whom the gateway has seen, and those of the file. */
export async function peopleCommand(
  { text, tenant, role, limit, ...options }: PeopleOptions,
  io: Io,
): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).people({
    text,
    tenant,
    role,
    limit: limit ?? DEFAULT_LIMIT,
  })
  if (options.json) {
    printJson(io.stdout, body)
    return 'ok'
  }
  const { people, total } = body
  const heads = ['AS', 'NAME', 'TENANT', 'ROLES', 'FROM', 'CAME BY', 'CLIENTS', 'TOOLS', 'LAST SEEN']
  printLine(io.stdout, renderTable(heads, people.map(cellsOf), io.stdout))
  if (people.length < total)
    printLine(
      io.stderr,
      `${people.length} of ${total}: name some with --text, --tenant or --role, or show more with --limit.`,
    )
  return 'ok'
}

function cellsOf(row: PersonRow): string[] {
  const {
    name,
    label = '',
    tenant = '',
    callers,
    seenRoles = [],
    rolesFrom,
    cameBy = '',
    clients = [],
    visible,
    lastSeenAt,
  } = row
  const names = [...(row.as === undefined ? [] : [row.as]), ...callers.map(({ as }) => as)]
  const roles = [...new Set([...callers.flatMap((one) => one.roles), ...seenRoles])]
  const from = rolesFrom?.issuer ?? (callers.length > 0 ? 'the file' : '')
  const tools = visible ?? callers.find((one) => one.visible !== undefined)?.visible
  const last = lastSeenAt === undefined ? '' : new Date(lastSeenAt).toISOString()
  return [
    names.join(', ') || name,
    label,
    tenant,
    roles.join(', '),
    from,
    cameBy,
    clients.join(', '),
    tools === undefined ? '' : String(tools),
    last,
  ].map(printable)
}

/** `toolgate people forget`: removes the record of a person. */
export async function forgetPersonCommand(
  user: string,
  { tenant, ...options }: PeopleOptions,
  io: Io,
): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).forgetPerson(user, tenant)
  if (options.json) printJson(io.stdout, body)
  else {
    const whose = body.tenant === undefined ? body.user : `${body.user} of ${body.tenant}`
    const paint = painter(io.stdout, io.env)
    printLine(io.stdout, `${paint('red', 'forgotten')}  ${printable(whose)}, until they come again`)
  }
  return 'ok'
}
