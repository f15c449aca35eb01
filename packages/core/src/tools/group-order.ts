import { ConfigError } from '../errors.ts'

/** What an order needs to know of a group. */
export interface Depending {
  readonly dependsOn?: readonly string[]
}

/**
 * Gives the names of the groups in an order in which each comes after all that it depends on.
 *
 * @throws {ConfigError} for a dependency that is not known, and for a cycle, which it names
 */
export function orderGroups(groups: ReadonlyMap<string, Depending>): readonly string[] {
  const done = new Set<string>()
  const trail = new Set<string>()
  const visit = (name: string) => {
    if (done.has(name)) return
    if (trail.has(name)) throw new ConfigError(`groups.${name}.dependsOn`, `a cycle: ${cycleOf(trail, name)}`)
    trail.add(name)
    for (const [i, below] of (groups.get(name)?.dependsOn ?? []).entries()) {
      if (!groups.has(below)) throw unknownGroup(`groups.${name}.dependsOn[${i}]`, below, groups)
      visit(below)
    }
    trail.delete(name)
    done.add(name)
  }
  for (const name of groups.keys()) visit(name)
  return [...done]
}

function cycleOf(trail: ReadonlySet<string>, name: string): string {
  const names = [...trail]
  return [...names.slice(names.indexOf(name)), name].join(' → ')
}

function unknownGroup(path: string, name: string, groups: ReadonlyMap<string, Depending>): ConfigError {
  return new ConfigError(path, `no group is named "${name}"; the groups are ${[...groups.keys()].join(', ')}`)
}
