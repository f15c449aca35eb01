import type { GroupRow, ServerRow } from '@toolgate/gateway'
import { printable } from './io.ts'

/** Returns notes about servers that are down, and about rejected items. */
export function serverNotes(servers: readonly ServerRow[]): string[] {
  return servers.flatMap(({ name, status, reason, rejected, changed }) => [
    ...(status === 'ready' ? [] : [`server ${name} is ${status}${reason ? `: ${printable(reason)}` : ''}`]),
    ...(changed ? [`server ${name} changed at ${new Date(changed.at).toISOString()}: ${printable(changed.text)}`] : []),
    ...rejected.map(
      ({ kind, name: item, reason: why }) =>
        `server ${name}: ${kind} ${printable(item)} is not offered: ${printable(why)}`,
    ),
  ])
}

/** Returns notes about unavailable groups: the reason, and what to do. */
export function groupNotes(groups: readonly GroupRow[]): string[] {
  return groups
    .filter((group) => !group.available)
    .map(({ name, reason, suggestion }) =>
      [`group ${name} is unavailable${reason ? `: ${printable(reason)}` : ''}.`, printable(suggestion ?? '')]
        .join(' ')
        .trimEnd(),
    )
}
