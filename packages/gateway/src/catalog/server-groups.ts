import type { Group } from '@toolgate/core/groups'
import type { GroupConfig } from '../config/config.ts'
import { type ProbesDeps, toProbe, serverProbe } from '../probes/probes.ts'

/** The implicit group of a server: its tools are available while it is. No configured group can have this name. */
export function serverGroupName(server: string): string {
  return `server:${server}`
}

/** Gives the groups of the gate: the configured ones, and one for each server. */
export function toGroups(groups: readonly GroupConfig[], deps: ProbesDeps): ReadonlyMap<string, Group> {
  return new Map<string, Group>([
    ...groups.map(({ name, availableWhen, ...group }): [string, Group] => [
      name,
      { ...group, availableWhen: availableWhen.map((probe) => toProbe(probe, deps)) },
    ]),
    ...deps.servers.map((server): [string, Group] => [
      serverGroupName(server.name),
      { tools: [`${server.name}:*`], visibility: 'conditional', availableWhen: [serverProbe(server)] },
    ]),
  ])
}
