import { ConfigError } from '../errors.ts'
import { nearestOf } from '../util/text.ts'

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
    for (const below of groups.get(name)?.dependsOn ?? []) visit(below)
    trail.delete(name)
    done.add(name)
  }
  for (const [name, { dependsOn = [] }] of groups) {
    const unknown = dependsOn.filter((below) => !groups.has(below))
    const path = `groups.${name}.dependsOn`
    if (unknown.length > 0)
      throw new ConfigError(
        `${path}[${dependsOn.indexOf(unknown[0] as string)}]`,
        noGroupIsNamed(unknown, groups.keys()),
      )
  }
  for (const name of groups.keys()) visit(name)
  return [...done]
}

function cycleOf(trail: ReadonlySet<string>, name: string): string {
  const names = [...trail]
  return [...names.slice(names.indexOf(name)), name].join(' → ')
}

/** Says of each unknown name which group was probably meant, and then which groups there are. */
export function noGroupIsNamed(unknown: readonly string[], groups: Iterable<string>): string {
  const known = [...groups]
  const named = [...new Set(unknown)].map((name) => {
    const nearest = nearestOf(name, known)
    return `"${name}"${nearest === undefined ? '' : ` (did you mean "${nearest}"?)`}`
  })
  return `no group is named ${named.join(' or ')}; ${known.length === 0 ? 'there is none' : `the groups are ${known.join(', ')}`}`
}
