import type { Group } from '@toolgate/core/groups'
import { REQUEST_TEXTS } from '@toolgate/core/internal'

/** A locked group of which a caller may use something. */
export interface LockedGroup {
  readonly name: string
  readonly group: Group
  /** Whether this session has still to open it. */
  readonly isClosed: boolean
}

export function isRequested({ group }: LockedGroup): boolean {
  return group.unlock === 'request'
}

/** Gives the description of `request_tools`, with the groups that are still to be opened and what they are good for. */
export function toRequestDescription(locked: readonly LockedGroup[]): string {
  const closed = locked.filter((one) => one.isClosed && isRequested(one))
  if (closed.length === 0) return `${REQUEST_TEXTS.description} All are open.`
  const lines = closed.map(({ name, group }) => `\n- ${name}: ${aboutGroup(name, group)}`)
  return `${REQUEST_TEXTS.description} The groups:${lines.join('')}`
}

/** Gives the description of `search_tools`, with what there is to find beyond the list. */
export function toSearchDescription(
  description: string,
  locked: readonly LockedGroup[],
  session: string | undefined,
): string {
  const beyond = locked.filter(
    ({ group, isClosed }) => session === undefined || (isClosed && group.unlock === 'search'),
  )
  if (beyond.length === 0) return description
  const lines = beyond.map(({ name, group }) => `\n- ${aboutGroup(name, group)}`)
  return `${description} It also finds tools that are not in your list:${lines.join('')}`
}

function aboutGroup(name: string, { title = name, hint }: Group): string {
  return hint === undefined ? title : `${title}. ${hint}`
}
