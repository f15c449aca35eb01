import type { App, Group } from '@toolgate/core/groups'
import type { AppConfig, GroupConfig } from '../../config/config.ts'
import { type ProbesDeps, serverProbe, toProbe } from '../probes/probes.ts'

/**
 * Returns the name of a server's implicit group. Its tools are available while the server is. No configured group can
 * have this name.
 */
export function serverGroupName(server: string): string {
  return `server:${server}`
}

/** Returns the groups of the gate: the configured ones and one for each server. */
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

/**
 * Returns the apps of the gate. `own`: the ids of the gateway's meta-tools, which are in every app. Within an app they
 * find only the app's tools.
 */
export function toApps(apps: readonly AppConfig[] = [], own: readonly string[] = []): ReadonlyMap<string, App> {
  return new Map(
    apps.map(({ name, import: groups, tools, ...rest }): [string, App] => [
      name,
      {
        ...rest,
        import: groups.map(({ group, visibility }) => (visibility === undefined ? group : { group, visibility })),
        tools: [...tools, ...own],
      },
    ]),
  )
}
