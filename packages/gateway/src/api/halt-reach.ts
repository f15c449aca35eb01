import type { Tool } from '@toolgate/core'
import type { parseGroups } from '@toolgate/core/groups'
import { type HaltTarget, nearestOf } from '@toolgate/core/internal'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import type { CallerConfig } from '../config/config.ts'
import type { HaltReach } from './wire.ts'

export interface HaltWorld {
  readonly tools: readonly Tool[]
  readonly callers: readonly CallerConfig[]
  readonly groups: ReturnType<typeof parseGroups>['selectors']
}

/** Gives what a target names now, so that whoever halts in a hurry sees that a misspelt name halts nothing. */
export function haltReach({ tool, user, tenant }: HaltTarget, { tools, callers, groups }: HaltWorld): HaltReach {
  const selector = tool === undefined ? undefined : parseSelector(tool, groups)
  const named = selector ? tools.filter((one) => matchesSelector(selector, one, 'possible')) : tools
  const nearest =
    tool !== undefined && named.length === 0
      ? nearestOf(
          tool,
          tools.map(({ id }) => id),
        )
      : undefined
  const agents = callers.filter((one) => one.for === 'mcp')
  const isNamed = ({ caller }: CallerConfig) =>
    (user === undefined || caller.user === user) && (tenant === undefined || caller.tenant === tenant)
  return {
    tools: named.length,
    ...(nearest === undefined ? {} : { nearestTool: nearest }),
    ...(user === undefined && tenant === undefined ? {} : { callers: agents.filter(isNamed).length }),
  }
}
