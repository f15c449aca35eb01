import path from 'node:path'
import { didYouMean } from '@toolgate/values'
import type * as z from 'zod'
import type { GroupConfig, ProbeConfig } from '../config.ts'
import { checkSelector } from '../policy.ts'
import type { ConfigPath } from '../problems.ts'
import { checkShape, found, keysOf, lengthOf, readEach, type Reading, reportUnknownKey } from '../reading.ts'
import { type GroupInput, groupShellSchema, groupsSchema, probeSchemas } from '../schema/groups.ts'
import type { Section } from '../section.ts'
import { toFolder } from './servers.ts'

/** The dependencies of groups exist and have no cycle. */
export const groups: Section<readonly GroupConfig[]> = { schema: groupsSchema, read: readGroups }

function readGroups(reading: Reading): readonly GroupConfig[] {
  const read = readEach(reading.source, ['groups'], groupsSchema, (at, name) => {
    const input = checkShape(reading.source, at, groupShellSchema)
    const probes = readProbes(reading, [...at, 'availableWhen'])
    return input && toGroup(reading, String(name), input, probes)
  })
  reportCycles(reading, read)
  return read
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
    source.report([...at, 'ttlMs'], 'found "ttlMs", which needs "availableWhen"', { atKey: true })
  if (visibility === 'always' && probes.length > 0)
    source.report([...at, 'visibility'], 'found "always" with "availableWhen", expected "conditional"')
  if (visibility === 'conditional' && probes.length === 0 && dependsOn.length === 0)
    source.report(at, 'is conditional, expected "availableWhen" or "dependsOn" to say on what', { atKey: true })
  return { ...input, name, visibility, dependsOn, availableWhen }
}

function reportCycles({ source }: Reading, all: readonly GroupConfig[]): void {
  const byName = new Map(all.map((group) => [group.name, group]))
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
  for (const { name } of all) visit(name, [])
}

type ProbeSchemaKind = keyof typeof probeSchemas
const KINDS = Object.keys(probeSchemas) as readonly ProbeSchemaKind[]

/** Reads the probes of a group one by one, so that every problem is reported. */
function readProbes(reading: Reading, at: ConfigPath): readonly ProbeConfig[] {
  return Array.from({ length: lengthOf(reading.source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const kind = kindOf(reading, place)
    const probe = kind && checkShape(reading.source, place, probeSchemas[kind])
    if (!probe) return []
    if ('server' in probe) checkServerName(reading, [...place, 'server'], probe.server)
    return 'command' in probe ? [toCommandProbe(reading, place, probe)] : [probe]
  })
}

/** Returns the kind of a probe: its one known key. */
function kindOf({ source }: Reading, at: ConfigPath): ProbeSchemaKind | undefined {
  const keys = keysOf(source, at)
  const [kind, other] = KINDS.filter((one) => keys.includes(one))
  if (kind && other) {
    source.report([...at, other], `found "${kind}" and "${other}" in one probe, expected a probe for each`, {
      atKey: true,
    })
    return undefined
  }
  if (kind) return kind
  const [first] = keys
  if (first === undefined)
    source.report(at, `${found(source, at)}, expected a probe: a mapping with one of ${KINDS.join(', ')}`)
  else reportUnknownKey(source, at, first, KINDS)
  return undefined
}

function toCommandProbe(
  reading: Reading,
  at: ConfigPath,
  input: z.infer<(typeof probeSchemas)['command']>,
): ProbeConfig {
  const { source, configDir } = reading
  const [program = '', ...args] = input.command
  const place = [...at, 'command', 0]
  if (program.trim() === '') source.report(place, `${found(source, place)}, expected the name of a program`)
  // A path would otherwise be resolved from the command's folder. A bare name is looked up on PATH.
  const resolved = program.includes('/') ? path.resolve(configDir, program) : program
  return { ...input, command: [resolved, ...args], cwd: toFolder(reading, [...at, 'cwd'], input.cwd) }
}

function checkServerName({ source }: Reading, at: ConfigPath, name: string): void {
  const servers = keysOf(source, ['servers'])
  if (!servers.includes(name))
    source.report(at, `no server is named ${JSON.stringify(name)}${didYouMean(name, servers)}`)
}
