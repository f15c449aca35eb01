import type { Apps } from '@toolgate/core/groups'
import type { AppRow } from './wire.ts'

/** Gives what is shown of the apps of a gate. `own` are the gateway's tools, which are in every app and no app's. */
export function toAppRows(apps: Apps, own: ReadonlySet<string> = new Set()): readonly AppRow[] {
  return apps.list.map(({ name, title, instructions, groups }) => ({
    name,
    ...(title === undefined ? {} : { title }),
    path: `/mcp/${name}`,
    ...(instructions === undefined ? {} : { instructions }),
    groups: groups.filter(({ visibility }) => visibility !== 'hidden').map((group) => group.name),
    tools: apps.toolsOf(name).filter((id) => !own.has(id)),
    available: apps.availableOf(name).filter((id) => !own.has(id)).length,
  }))
}
