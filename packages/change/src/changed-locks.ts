import { parseAliases, toGroupMap } from '@toolgate/core/policy'
import { parseGroups } from '@toolgate/core/groups'
import { matchesSelector } from '@toolgate/core/toolset'
import type { Tool } from '@toolgate/core'
import { isSame } from './same-rules.ts'
import type { TrialRules } from './trial.ts'

/**
 * Returns the locked groups of a tool that differ between the two sets of rules, because records do not say which groups a
 * session had opened.
 */
export function changedLocks(before: TrialRules, after: TrialRules): (tool: Tool) => readonly string[] {
  const sides = [before, after].map(({ groups = {}, aliases }) => {
    const definitions = toGroupMap(groups)
    return { definitions, ...parseGroups(definitions, parseAliases(aliases)) }
  })
  const [had, has] = sides.map(({ definitions }) => definitions)
  const names = [...new Set(sides.flatMap(({ definitions }) => [...definitions.keys()]))].filter((name) => {
    const both = [had?.get(name), has?.get(name)]
    return both.some((group) => group?.unlock !== undefined) && !isSame(both[0], both[1])
  })
  return (tool) =>
    names.filter((name) =>
      sides.some(({ selectors }) => selectors.get(name)?.some((member) => matchesSelector(member, tool, 'possible'))),
    )
}
