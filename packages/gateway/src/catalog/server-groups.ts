import type { Group, GroupState } from '@toolgate/core'
import type { GroupConfig, ServerConfig } from '../config/config.ts'
import type { UpstreamState } from '../upstream/upstream.ts'

/** The implicit group of a server: its tools are available while it is. No configured group can have this name. */
export function serverGroupName(server: string): string {
  return `server:${server}`
}

/** Gives the groups of the gate: the configured ones, and one for each server. */
export function toGroups(groups: readonly GroupConfig[], servers: readonly ServerConfig[]): ReadonlyMap<string, Group> {
  return new Map<string, Group>([
    ...groups.map(({ name, availableWhen: _, ...group }): [string, Group] => [name, group]),
    ...servers.map(({ name }): [string, Group] => [
      serverGroupName(name),
      { tools: [`${name}:*`], visibility: 'conditional' },
    ]),
  ])
}

/** Gives the availability of a server's tools. Why it is down may quote its stderr, which is for people only. */
export function toGroupState(server: string, { status, reason, since }: UpstreamState): GroupState {
  if (status === 'ready') return { available: true, since }
  return {
    available: false,
    reason: `the server ${server} is ${status === 'starting' ? 'starting' : 'down'}`,
    ...(reason === undefined ? {} : { detail: reason }),
    suggestion: 'It is restarted by itself; try again in a while.',
    since,
  }
}
