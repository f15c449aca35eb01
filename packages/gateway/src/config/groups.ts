import path from 'node:path'
import { didYouMean } from '@toolgate/values'
import type { CommandProbeConfig, GroupConfig, HttpProbeConfig, ProbeConfig, TcpProbeConfig } from './config.ts'
import { checkSelector } from './policy.ts'
import type { ConfigPath } from './problems.ts'
import { checkShape, found, keysOf, lengthOf, type Reading, reportUnknownKey } from './reading.ts'
import { type GroupInput, groupShellSchema, groupsSchema, probeSchemas } from './schema/groups.ts'
import { toFolder } from './servers.ts'

/** Reads `groups`, and checks that their dependencies exist and have no cycle. */
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
    source.report([...at, 'ttlMs'], 'found "ttlMs", which needs "availableWhen"', { atKey: true })
  if (visibility === 'always' && probes.length > 0)
    source.report([...at, 'visibility'], 'found "always" with "availableWhen", expected "conditional"')
  if (visibility === 'conditional' && probes.length === 0 && dependsOn.length === 0)
    source.report(at, 'is conditional, expected "availableWhen" or "dependsOn" to say on what', { atKey: true })
  return {
    ...input,
    name,
    visibility,
    dependsOn,
    availableWhen,
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

type Kind = keyof typeof probeSchemas
const KINDS = Object.keys(probeSchemas) as readonly Kind[]

/** Reads the probes of a group one by one, so that every problem is reported. */
function readProbes(reading: Reading, at: ConfigPath): readonly ProbeConfig[] {
  return Array.from({ length: lengthOf(reading.source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const kind = kindOf(reading, place)
    const probe = kind && readProbe(reading, place, kind)
    return probe ? [probe] : []
  })
}

/** Returns the kind of a probe: its one known key. */
function kindOf({ source }: Reading, at: ConfigPath): Kind | undefined {
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

function readProbe(reading: Reading, at: ConfigPath, kind: Kind): ProbeConfig | undefined {
  const { source } = reading
  switch (kind) {
    case 'env':
      return checkShape(source, at, probeSchemas.env)
    case 'tcp':
      return readTcp(reading, at)
    case 'http':
      return readHttp(reading, at)
    case 'command':
      return readCommand(reading, at)
    case 'server':
      return readServer(reading, at)
  }
}

function readTcp({ source }: Reading, at: ConfigPath): TcpProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.tcp)
  if (!input) return undefined
  const tcp = parseAddress(input.tcp)
  const place = [...at, 'tcp']
  if (tcp) return { ...input, tcp }
  source.report(
    place,
    `${found(source, place)}, expected host:port such as "127.0.0.1:4444", or a port from 1 to 65535`,
  )
  return undefined
}

function readHttp({ source }: Reading, at: ConfigPath): HttpProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.http)
  if (!input) return undefined
  const place = [...at, 'http']
  const url = URL.parse(input.http)
  if (url?.username || url?.password) {
    source.report(place, 'found a user or password in the URL, expected them in "headers"')
    return undefined
  }
  if (!url || !/^https?:$/.test(url.protocol)) {
    source.report(place, `${found(source, place)}, expected a URL such as "http://127.0.0.1:9200/health"`)
    return undefined
  }
  const { status, ...rest } = input
  return { ...rest, ...(status === undefined ? {} : { status: [status].flat() }) }
}

function readCommand(reading: Reading, at: ConfigPath): CommandProbeConfig | undefined {
  const { source, configDir } = reading
  const input = checkShape(source, at, probeSchemas.command)
  if (!input) return undefined
  const [program = '', ...args] = input.command
  const place = [...at, 'command', 0]
  if (program.trim() === '') source.report(place, `${found(source, place)}, expected the name of a program`)
  // A path would be resolved from the command's folder. A bare name is looked up on PATH.
  const resolved = program.includes('/') ? path.resolve(configDir, program) : program
  const cwd = toFolder(reading, [...at, 'cwd'], input.cwd)
  return { ...input, command: [resolved, ...args], cwd }
}

function readServer({ source }: Reading, at: ConfigPath): ProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.server)
  if (!input) return undefined
  const servers = keysOf(source, ['servers'])
  if (!servers.includes(input.server))
    source.report(
      [...at, 'server'],
      `no server is named ${JSON.stringify(input.server)}${didYouMean(input.server, servers)}`,
    )
  return input
}

const HOST_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/

/** Parses `host:port`, `[::1]:port` or a bare port (of 127.0.0.1). Returns `undefined` for anything else. */
function parseAddress(text: string | number): { readonly host: string; readonly port: number } | undefined {
  const bare = typeof text === 'number' ? String(text) : text
  const [, v6, name, digits] = /^\d{1,5}$/.test(bare)
    ? [undefined, undefined, '127.0.0.1', bare]
    : (HOST_PORT.exec(bare) ?? [])
  const host = v6 ?? name
  const port = Number(digits)
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}
