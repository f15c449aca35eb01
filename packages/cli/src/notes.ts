import type { GroupRow, ListRow, RolesFrom, ServerRow } from '@toolgate/gateway'
import { printable } from './io.ts'
import { count } from './render.ts'

/** Returns notes about servers that are down, and about rejected items. */
export function serverNotes(servers: readonly ServerRow[]): string[] {
  return servers.flatMap(({ name, status, reason, rejected, changed }) => [
    ...(status === 'ready' ? [] : [`server ${name} is ${status}${reason ? `: ${printable(reason)}` : ''}`]),
    ...(changed ? [`server ${name} changed at ${new Date(changed.at).toISOString()}: ${printable(changed.text)}`] : []),
    ...rejected.map(
      ({ kind, name: item, reason: why, part }) =>
        `server ${name}: ${kind} ${printable(item)} is ${part ? `offered without its ${part}` : 'not offered'}: ${printable(why)}`,
    ),
  ])
}

/** Returns a text about a server that is ready, such as `3 tools; may ask clients for: elicit, log`. */
export function readyText({ toolCount, may }: Pick<ServerRow, 'toolCount' | 'may'>): string {
  const tools = count(toolCount, 'tool')
  return may === undefined ? tools : `${tools}; ${mayText(may)}`
}

/** Returns what a server may ask clients for, as one text. */
export function mayText(may: readonly string[]): string {
  return `may ask clients for: ${may.map(printable).join(', ')}`
}

/** Returns a note about the users whose lists were read, for servers with a list per user. */
export function listNotes(lists: readonly ListRow[] = []): string[] {
  return lists.map(({ server, user = '', tenant, state, reason }) => {
    const who = printable(tenant === undefined ? user : `${tenant}/${user}`)
    switch (state) {
      case 'known':
        return `server ${server}: the list of ${who}`
      case 'unknown':
        return `server ${server} has not listed for ${who} yet${reason ? `: ${printable(reason)}` : '; their first request starts it.'}`
      case 'no_user':
        return `server ${server} lists for each user, and this caller has none.`
      case 'withheld':
        return `server ${server} lists for each user; only approvers and the user see the list.`
    }
  })
}

/** Returns a note about the roles of a person who signed in: `roles of the token of 2026-11-28T14:03:00Z from https://…`. */
export function rolesNotes(from: RolesFrom | undefined): string[] {
  if (!from) return []
  return [`roles of the ${from.by} of ${new Date(from.at).toISOString()} from ${printable(from.issuer)}`]
}

/** Returns notes about unavailable groups: the reason, and the solution. */
export function groupNotes(groups: readonly GroupRow[]): string[] {
  return groups
    .filter((group) => !group.available)
    .map(({ name, reason, suggestion }) =>
      [`group ${name} is unavailable${reason ? `: ${printable(reason)}` : ''}.`, printable(suggestion ?? '')]
        .join(' ')
        .trimEnd(),
    )
}
