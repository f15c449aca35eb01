import { ConfigError } from '@toolgate/core'
import type { GroupConfig } from '../config/config.ts'

/**
 * Puts the groups in an order in which each comes after all that it depends on.
 *
 * @param known names that `dependsOn` may hold beside those of the groups
 * @throws {ConfigError} for a name twice, a dependency that is not known, and a cycle, which it names
 */
export function orderGroups(groups: readonly GroupConfig[], known: ReadonlySet<string>): readonly GroupConfig[] {
  const byName = new Map<string, GroupConfig>()
  for (const group of groups) {
    if (byName.has(group.name)) throw new ConfigError(`groups.${group.name}`, 'is there twice')
    byName.set(group.name, group)
  }
  const ordered = new Set<GroupConfig>()
  for (const group of groups) visit(group, [])
  return [...ordered]

  function visit(group: GroupConfig, trail: readonly string[]): void {
    if (ordered.has(group)) return
    const path = [...trail, group.name]
    if (trail.includes(group.name))
      throw new ConfigError(
        `groups.${group.name}.dependsOn`,
        `a cycle: ${path.slice(trail.indexOf(group.name)).join(' → ')}`,
      )
    for (const [i, name] of group.dependsOn.entries()) {
      const below = byName.get(name)
      if (below) visit(below, path)
      else if (!known.has(name))
        throw new ConfigError(
          `groups.${group.name}.dependsOn[${i}]`,
          `no group is named "${name}"; known are ${[...byName.keys(), ...known].join(', ')}`,
        )
    }
    ordered.add(group)
  }
}
