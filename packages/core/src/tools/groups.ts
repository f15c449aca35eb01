import { checkShape, ConfigError, didYouMean, nearestOf, shapeOf, toNamedMap } from '@toolgate/values'
import { type MaybePromise, PROBE_KINDS, type ProbeKind } from '../ports/ports.ts'
import { isPlain } from '@toolgate/values/json'
import type { Aliases } from './aliases.ts'
import { type GroupSelectors, parseSelectorAt, type Selector } from './selector.ts'
import type { Tool, ToolDefinition } from './tool.ts'

/** A named, reusable set of tools. */
export interface Group {
  /** Selectors, except `group:`. */
  readonly tools: readonly string[]
  /** `conditional`: the tools are listed only while the group is available. Default: `conditional` with probes, else `always`. */
  readonly visibility?: 'always' | 'conditional'
  /** The group is available while all of these probes succeed. The same function, or an equal key, is the same probe. */
  readonly availableWhen?: readonly (Probe | ProbeFunction)[]
  /** Milliseconds for which the result of a probe is kept. Default 10,000. */
  readonly ttlMs?: number
  /**
   * Returns the tools, at the first use of the group. Tools that the group's selectors do not match are dropped, because
   * the rules of the group must apply to all of its tools.
   */
  readonly load?: LoadTools
  /** Milliseconds until `load` times out. Default 30,000. */
  readonly loadTimeoutMs?: number
  readonly title?: string
  /** The purpose of the group, as a sentence. The model sees it while the group is locked. */
  readonly hint?: string
  /** The rule by which a session opens the group. Default: the group is not locked. */
  readonly unlock?: UnlockRule
  /** What to do while the group is unavailable, as a sentence. */
  readonly suggestion?: string
  /** Groups that this one requires, transitively. */
  readonly dependsOn?: readonly string[]
}

/**
 * The rule that opens a locked group for a session: a call of the meta-tool `request_tools`, a search that finds one of
 * its tools, or an event that the host names. Text never opens a group.
 */
export type UnlockRule = 'request' | 'search' | { readonly event: string }

type LoadTools = (asking: { readonly signal: AbortSignal }) => MaybePromise<Iterable<Tool | ToolDefinition>>

/** A group whose tools are loaded at its first use. */
export type LoadedGroup = Group & { readonly load: LoadTools }

/** The groups of a gate, checked: all names are known, and there is no cycle. */
export interface Groups {
  readonly selectors: GroupSelectors
  /** The groups that can be unavailable, each with the conditional groups it requires, the nearest first. */
  readonly conditional: ReadonlyMap<string, { readonly group: Group; readonly requires: readonly string[] }>
  /** The groups that a session must open, by name. */
  readonly locked: ReadonlyMap<string, Group & { readonly unlock: UnlockRule }>
  /** The groups whose tools are loaded at first use, by name. */
  readonly loaded: ReadonlyMap<string, LoadedGroup>
  /** Whether some group has probes. */
  readonly probed: boolean
}

export type GroupsInput = Readonly<Record<string, Group>> | ReadonlyMap<string, Group>

export function toGroupMap(groups: GroupsInput): ReadonlyMap<string, Group> {
  return toNamedMap('groups', groups)
}

/** Checks the groups that a tool joins. @throws {ConfigError} `tool_invalid` for an unknown group */
export function checkJoined(tool: Tool, groups: Pick<GroupSelectors, 'has' | 'keys'>): void {
  const unknown = tool.groups.filter((name) => !groups.has(name))
  if (unknown.length > 0)
    throw new ConfigError(`tool "${tool.id}".groups`, noGroupIsNamed(unknown, groups.keys()), { code: 'tool_invalid' })
}

/**
 * Checks groups and returns them.
 *
 * @throws {ConfigError} naming the group, for an unknown dependency, a cycle, or an invalid selector or probe
 */
export function parseGroups(groups: GroupsInput = {}, aliases: Aliases = new Map()): Groups {
  const byName = toGroupMap(groups)
  for (const [name, group] of byName) checkGroup(`groups.${name}`, group)
  orderGroups(byName)
  const selectors = Object.assign(new Map<string, readonly Selector[]>(), { aliases })
  const noGroups: GroupSelectors = Object.assign(new Map(), { aliases })
  const conditional = new Map<string, { group: Group; requires: readonly string[] }>()
  const locked = new Map<string, Group & { readonly unlock: UnlockRule }>()
  for (const [name, group] of byName) {
    const named = group.tools.map((text, i) => parseSelectorAt(`groups.${name}.tools[${i}]`, text, noGroups, 'tools'))
    selectors.set(name, [...named, { kind: 'joined', text: `group:${name}`, group: name }])
    const requires = closure(name, byName).filter((below) => isConditional(byName.get(below)))
    if (requires.length > 0) conditional.set(name, { group, requires })
    if (group.unlock !== undefined)
      locked.set(name, { ...group, unlock: checkUnlock(`groups.${name}.unlock`, group.unlock) })
  }
  const loaded = new Map([...byName].filter((entry): entry is [string, LoadedGroup] => entry[1].load !== undefined))
  return { selectors, conditional, locked, loaded, probed: [...byName.values()].some(hasProbes) }
}

const WORDS = ['always', 'conditional'] as const satisfies readonly Group['visibility'][]
const VISIBILITIES: ReadonlySet<unknown> = new Set(WORDS)
const GROUP = shapeOf<Group>(
  {
    tools: true,
    visibility: true,
    availableWhen: true,
    ttlMs: true,
    load: true,
    loadTimeoutMs: true,
    title: true,
    hint: true,
    unlock: true,
    suggestion: true,
    dependsOn: true,
  },
  'field',
)
const UNLOCK = shapeOf<Exclude<UnlockRule, string>>({ event: true }, 'field')

/** Returns whether a group can be unavailable by itself. */
function isConditional(group: Group | undefined): boolean {
  return group !== undefined && (group.visibility === 'conditional' || hasProbes(group))
}

function hasProbes({ availableWhen = [] }: Group): boolean {
  return availableWhen.length > 0
}

function checkGroup(path: string, group: Group): void {
  checkShape(path, group, GROUP)
  if (!Array.isArray(group.tools)) throw new ConfigError(`${path}.tools`, 'must be a list of selectors')
  const visibility: unknown = group.visibility
  if (visibility !== undefined && !VISIBILITIES.has(visibility))
    throw new ConfigError(
      `${path}.visibility`,
      `must be ${WORDS.join(' or ')}, not ${JSON.stringify(visibility)}${typeof visibility === 'string' ? didYouMean(visibility, WORDS) : ''}`,
    )
  if (group.dependsOn !== undefined && !isListOfTexts(group.dependsOn))
    throw new ConfigError(`${path}.dependsOn`, 'must be a list of groups')
  if (group.availableWhen !== undefined) checkProbes(`${path}.availableWhen`, group.availableWhen)
  if (group.visibility === 'always' && hasProbes(group))
    throw new ConfigError(`${path}.visibility`, 'is always, but the group has probes')
  if (group.ttlMs !== undefined) checkMs(`${path}.ttlMs`, group.ttlMs)
  if (group.load !== undefined && typeof group.load !== 'function')
    throw new ConfigError(`${path}.load`, 'must be a function')
  if (group.loadTimeoutMs !== undefined) checkMs(`${path}.loadTimeoutMs`, group.loadTimeoutMs)
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function checkUnlock(path: string, rule: UnlockRule): UnlockRule {
  if (rule === 'request' || rule === 'search') return rule
  if (typeof rule === 'object') checkShape(path, rule, UNLOCK)
  if (typeof rule === 'object' && rule !== null && typeof rule.event === 'string' && rule.event !== '') return rule
  throw new ConfigError(path, 'must be request, search or { event: <name> }')
}

/** Returns a group and all groups that it depends on, directly or not, itself first. */
export function closure(start: string, groups: ReadonlyMap<string, Group>): string[] {
  const found = new Set<string>()
  const visit = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    for (const below of groups.get(name)?.dependsOn ?? []) visit(below)
  }
  visit(start)
  return [...found]
}

/**
 * Returns the names of the groups, each after all groups that it depends on.
 *
 * @throws {ConfigError} for an unknown dependency, and for a cycle
 */
export function orderGroups(
  groups: ReadonlyMap<string, { readonly dependsOn?: readonly string[] }>,
): readonly string[] {
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
    const first = dependsOn.findIndex((required) => !groups.has(required))
    if (first === -1) continue
    const unknown = dependsOn.filter((required) => !groups.has(required))
    throw new ConfigError(`groups.${name}.dependsOn[${first}]`, noGroupIsNamed(unknown, groups.keys()))
  }
  for (const name of groups.keys()) visit(name)
  return [...done]
}

function cycleOf(trail: ReadonlySet<string>, name: string): string {
  const names = [...trail]
  return [...names.slice(names.indexOf(name)), name].join(' → ')
}

/** Returns an error text with the nearest group for each unknown name, and all groups. */
export function noGroupIsNamed(unknown: readonly string[], groups: Iterable<string>): string {
  const known = [...groups]
  const named = [...new Set(unknown)].map((name) => {
    const nearest = nearestOf(name, known)
    return `"${name}"${nearest === undefined ? '' : ` (did you mean "${nearest}"?)`}`
  })
  return `no group is named ${named.join(' or ')}; ${known.length === 0 ? 'there is none' : `the groups are ${known.join(', ')}`}`
}

/** The result of a probe. A plain `false` has no reason. */
export type ProbeAnswer =
  | boolean
  | {
      readonly available: boolean
      /** Why the probe failed, as a clause without a full stop. Callers see it. */
      readonly reason?: string
      /** Details, for people only. */
      readonly detail?: string
      /** How to fix the problem, as a sentence. The suggestion of the group takes precedence. */
      readonly suggestion?: string
    }

export interface ProbeAsking {
  /** Aborts at the deadline, and when the result is no longer needed. */
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** Checks whether something works. An exception and a late answer count as unavailable. */
export type ProbeFunction = (asking: ProbeAsking) => MaybePromise<ProbeAnswer>

/** A check that several groups can share. */
export interface Probe {
  /** Probes with equal keys are the same probe, which runs once for all groups that name it. */
  readonly key: string
  readonly ask: ProbeFunction
  /** What is checked, as a noun: `the address 127.0.0.1:4444`. Callers see it. Default: `its probe`. */
  readonly what?: string
  /** The kind of thing that is checked, for lists of needs. Default `function`. */
  readonly kind?: ProbeKind
  /** Default 1,000 ms. */
  readonly timeoutMs?: number
  /** Set it for an expensive probe, such as one that starts a process. Few of these run at once. */
  readonly isHeavy?: boolean
  /** For a probe that can report changes. It runs at each change, and not on a timer. */
  subscribe?(listener: () => void): () => void
}

const KINDS: ReadonlySet<unknown> = new Set(PROBE_KINDS)
const MAX_MS = 86_400_000
const PROBE = shapeOf<Probe>(
  { key: true, ask: true, what: true, kind: true, timeoutMs: true, isHeavy: true, subscribe: true },
  'field',
)

/** Checks probes. @throws {ConfigError} with the path of an invalid probe */
function checkProbes(path: string, probes: unknown): readonly (Probe | ProbeFunction)[] {
  if (!Array.isArray(probes)) throw new ConfigError(path, 'must be a list of probes')
  for (const [i, probe] of probes.entries()) checkProbe(`${path}[${i}]`, probe)
  return probes
}

function checkProbe(path: string, probe: unknown): void {
  if (typeof probe === 'function') return
  if (isPlain(probe)) checkShape(path, probe, PROBE)
  const { key, ask, kind, timeoutMs }: Partial<Probe> = probe ?? {}
  if (typeof key !== 'string' || key === '' || typeof ask !== 'function')
    throw new ConfigError(path, 'must be a function, or a probe with "key" and "ask"')
  if (kind !== undefined && !KINDS.has(kind))
    throw new ConfigError(`${path}.kind`, `must be one of ${PROBE_KINDS.join(', ')}, not ${JSON.stringify(kind)}`)
  if (timeoutMs !== undefined) checkMs(`${path}.timeoutMs`, timeoutMs)
}

/** Checks a number of milliseconds. @throws {ConfigError} unless it is from 1 to a day */
function checkMs(path: string, ms: number): number {
  if (Number.isFinite(ms) && ms >= 1 && ms <= MAX_MS) return ms
  throw new ConfigError(path, `${String(ms)} is not a number of milliseconds from 1 to ${MAX_MS}`)
}
