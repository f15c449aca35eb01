import { ConfigError } from '../errors.ts'
import type { Group } from './groups.ts'
import { parseSelector } from './selector.ts'

/** What is wrong with groups; a gate would refuse the first of them. */
export interface GroupProblem {
  readonly code: 'group_cycle' | 'group_unknown' | 'selector_invalid' | 'config_invalid'
  readonly path: string
  readonly text: string
}

/** Finds everything that is wrong with groups: unknown ones, each cycle once, selectors that cannot be read. */
export function lintGroups(groups: ReadonlyMap<string, Group>): readonly GroupProblem[] {
  return [
    ...[...groups].flatMap(([name, group]) => [
      ...memberProblems(name, group),
      ...unknownProblems(name, group, groups),
    ]),
    ...findCycles(groups).map((cycle): GroupProblem => ({
      code: 'group_cycle',
      path: `groups.${cycle[0]}.dependsOn`,
      text: `a cycle: ${cycle.join(' → ')}`,
    })),
  ]
}

function memberProblems(name: string, group: Group): readonly GroupProblem[] {
  const path = `groups.${name}.tools`
  if (!Array.isArray(group?.tools)) return [{ code: 'config_invalid', path, text: 'must be a list of selectors' }]
  return group.tools.flatMap((text: unknown, i): GroupProblem[] => {
    try {
      parseSelector(text)
      return []
    } catch (error) {
      return [{ code: 'selector_invalid', path: `${path}[${i}]`, text: (error as ConfigError).message }]
    }
  })
}

function unknownProblems(name: string, group: Group, groups: ReadonlyMap<string, Group>): readonly GroupProblem[] {
  return dependenciesOf(group).flatMap((below, i): GroupProblem[] =>
    groups.has(below)
      ? []
      : [
          {
            code: 'group_unknown',
            path: `groups.${name}.dependsOn[${i}]`,
            text: `no group is named "${below}"; the groups are ${[...groups.keys()].join(', ')}`,
          },
        ],
  )
}

/** Gives each cycle once, from the name that sorts first back to it. */
function findCycles(groups: ReadonlyMap<string, Group>): readonly (readonly string[])[] {
  const cycles = new Map<string, readonly string[]>()
  const done = new Set<string>()
  const visit = (name: string, trail: readonly string[]) => {
    const from = trail.indexOf(name)
    if (from !== -1) {
      const cycle = fromFirst(trail.slice(from))
      cycles.set(JSON.stringify(cycle), cycle)
      return
    }
    if (done.has(name)) return
    for (const below of dependenciesOf(groups.get(name))) visit(below, [...trail, name])
    done.add(name)
  }
  for (const name of groups.keys()) visit(name, [])
  return [...cycles.values()]
}

function fromFirst(ring: readonly string[]): readonly string[] {
  const first = ring.indexOf(ring.toSorted()[0] as string)
  return [...ring.slice(first), ...ring.slice(0, first), ring[first] as string]
}

function dependenciesOf(group: Group | undefined): readonly string[] {
  return Array.isArray(group?.dependsOn) ? group.dependsOn : []
}
