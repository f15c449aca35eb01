import type { App } from '@toolgate/core/groups'
import type { AppConfig } from '../config/config.ts'

/**
 * Gives the apps of the gate. `own` are the ids of the gateway's own tools, with which models find and open others:
 * they are in every app, as through one they find what the app offers and nothing else.
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
