import { didYouMean } from '@toolgate/core/internal'
import type { GroupConfig, ProbeConfig } from './config.ts'
import { checkShape } from './explain.ts'
import { checkSelector } from './policy.ts'
import { readProbes } from './probes.ts'
import type { Reading } from './reading.ts'
import { type GroupInput, groupShellSchema, groupsSchema } from './schema.ts'

/** Reads `groups`, and checks that what they depend on exists and does not run in a circle. */
export function readGroups(reading: Reading): readonly GroupConfig[] {
  const { source, groupNames } = reading
  const at = source.get(['groups'])
  if (at && !at.entries) checkShape(source, ['groups'], groupsSchema)
  const groups = groupNames.flatMap((name) => {
    const problem = groupsSchema.keyType.safeParse(name).error?.issues[0]?.message
    if (problem !== undefined)
      source.report(['groups', name], `found the name ${JSON.stringify(name)}, expected ${problem}`, { atKey: true })
    const input = checkShape(source, ['groups', name], groupShellSchema)
    const probes = readProbes(reading, ['groups', name, 'availableWhen'])
    return input ? [toGroup(reading, name, input, probes)] : []
  })
  reportCycles(reading, groups)
  return groups
}

function toGroup(
  reading: Reading,
  name: string,
  input: GroupInput,
  availableWhen: readonly ProbeConfig[],
): GroupConfig {
  const { source, groupNames } = reading
  const at = ['groups', name]
  const probes = input.availableWhen ?? []
  const dependsOn = input.dependsOn ?? []
  const visibility = input.visibility ?? (probes.length > 0 ? 'conditional' : 'always')
  for (const [i, selector] of input.tools.entries()) {
    if (selector.startsWith('group:'))
      source.report(
        [...at, 'tools', i],
        `found ${JSON.stringify(selector)}, expected the tools themselves; use "dependsOn" for groups that this one needs`,
      )
    else checkSelector(reading, [...at, 'tools', i], selector)
  }
  for (const [i, other] of dependsOn.entries())
    if (!groupNames.includes(other))
      source.report(
        [...at, 'dependsOn', i],
        `no group is named ${JSON.stringify(other)}${didYouMean(other, groupNames)}`,
      )
  if (input.ttlMs !== undefined && probes.length === 0)
    source.report([...at, 'ttlMs'], 'found "ttlMs" without "availableWhen", which it is for', { atKey: true })
  if (visibility === 'always' && probes.length > 0)
    source.report([...at, 'visibility'], 'found "always" with "availableWhen", expected "conditional"')
  if (visibility === 'conditional' && probes.length === 0 && dependsOn.length === 0)
    source.report(at, 'is conditional, expected "availableWhen" or "dependsOn" to say on what', { atKey: true })
  return {
    name,
    tools: input.tools,
    visibility,
    ...(input.title === undefined ? {} : { title: input.title }),
    ...(input.suggestion === undefined ? {} : { suggestion: input.suggestion }),
    ...(input.hint === undefined ? {} : { hint: input.hint }),
    ...(input.unlock === undefined ? {} : { unlock: input.unlock }),
    dependsOn,
    availableWhen,
    ...(input.ttlMs === undefined ? {} : { ttlMs: input.ttlMs }),
  }
}

function reportCycles({ source }: Reading, groups: readonly GroupConfig[]): void {
  const byName = new Map(groups.map((group) => [group.name, group]))
  const done = new Set<string>()
  const visit = (name: string, trail: readonly string[]): void => {
    const start = trail.indexOf(name)
    if (start !== -1) {
      const cycle = [...trail.slice(start), name]
      source.report(['groups', name, 'dependsOn'], `found a cycle: ${cycle.join(' → ')}, expected none`)
      return
    }
    if (done.has(name)) return
    for (const next of byName.get(name)?.dependsOn ?? []) visit(next, [...trail, name])
    done.add(name)
  }
  for (const { name } of groups) visit(name, [])
}
