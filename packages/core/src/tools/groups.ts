import { ConfigError } from '../errors.ts'
import type { MaybePromise } from '../ports.ts'
import { didYouMean } from '../util/text.ts'
import { checkShape, shapeOf, toNamedMap } from '../util/shape.ts'
import type { Aliases } from './aliases.ts'
import { noGroupIsNamed, orderGroups } from './group-order.ts'
import { checkMs, checkProbes, type Probe, type ProbeFunction } from './probe.ts'
import { type GroupSelectors, parseSelector, type Selector } from './selector.ts'
import type { Tool, ToolDefinition } from './tool.ts'

/** A named, reusable set of tools. */
export interface Group {
  /** Selectors, `group:` excepted. */
  readonly tools: readonly string[]
  /** `conditional`: its tools are offered only while the group is available; default where it has probes. Else `always`. */
  readonly visibility?: 'always' | 'conditional'
  /** It is available while all of these are answered. Functions that are the same are one probe, and so are equal keys. */
  readonly availableWhen?: readonly (Probe | ProbeFunction)[]
  /** How long an answer of its probes is kept. Default 10,000 ms. */
  readonly ttlMs?: number
  /**
   * Gives its tools, at its first use. Those that its selectors do not name are not taken: what is said of the group
   * must be true of all of them.
   */
  readonly load?: LoadTools
  /** Ends the wait for `load`, which then has failed. Default 30,000 ms. */
  readonly loadTimeoutMs?: number
  readonly title?: string
  /** What it is good for, as a sentence: told to the model while the group is locked. */
  readonly hint?: string
  /** Locked until a session opens it, by this rule. Default: not locked. */
  readonly unlock?: UnlockRule
  /** What to do when it is unavailable, as a sentence. */
  readonly suggestion?: string
  /** Groups without which this one is unavailable, transitively. */
  readonly dependsOn?: readonly string[]
}

/**
 * What opens a locked group for a session: a call of the meta-tool `request_tools`, a search that finds one of its
 * tools, or an event that the host names. Text never does.
 */
export type UnlockRule = 'request' | 'search' | { readonly event: string }

export type LoadTools = (asking: { readonly signal: AbortSignal }) => MaybePromise<Iterable<Tool | ToolDefinition>>

/** A group whose tools are loaded at its first use. */
export type LoadedGroup = Group & { readonly load: LoadTools }

/** The groups of a gate, checked: every name known, no cycle. */
export interface Groups {
  readonly selectors: GroupSelectors
  /** Those that can be unavailable, with every conditional group each stands on, the nearest first. */
  readonly conditional: ReadonlyMap<string, { readonly group: Group; readonly requires: readonly string[] }>
  /** Those that a session must open, by name. */
  readonly locked: ReadonlyMap<string, Group & { readonly unlock: UnlockRule }>
  /** Those whose tools are loaded at first use, by name. */
  readonly loaded: ReadonlyMap<string, LoadedGroup>
  /** Whether any of them has probes. */
  readonly probed: boolean
}

export type GroupsInput = Readonly<Record<string, Group>> | ReadonlyMap<string, Group>

export function toGroupMap(groups: GroupsInput): ReadonlyMap<string, Group> {
  return toNamedMap('groups', groups)
}

/** @throws {ConfigError} `tool_invalid` for a tool that joins a group that there is not: what is said of it could not hold */
export function checkJoined(tool: Tool, groups: Pick<GroupSelectors, 'has' | 'keys'>): void {
  const unknown = tool.groups.filter((name) => !groups.has(name))
  if (unknown.length > 0)
    throw new ConfigError(`tool "${tool.id}".groups`, noGroupIsNamed(unknown, groups.keys()), { code: 'tool_invalid' })
}

/** @throws {ConfigError} naming the group and what is wrong: an unknown dependency, a cycle, a selector, a probe */
export function parseGroups(groups: GroupsInput = {}, aliases: Aliases = new Map()): Groups {
  const byName = toGroupMap(groups)
  for (const [name, group] of byName) checkGroup(`groups.${name}`, group)
  orderGroups(byName)
  const selectors = Object.assign(new Map<string, readonly Selector[]>(), { aliases })
  const noGroups: GroupSelectors = Object.assign(new Map(), { aliases })
  const conditional = new Map<string, { group: Group; requires: readonly string[] }>()
  const locked = new Map<string, Group & { readonly unlock: UnlockRule }>()
  for (const [name, group] of byName) {
    const named = group.tools.map((text, i) => memberSelector(`groups.${name}.tools[${i}]`, text, noGroups))
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

/** Answers whether a group can be unavailable by itself. */
export function isConditional(group: Group | undefined): boolean {
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

function memberSelector(path: string, text: string, noGroups: GroupSelectors): Selector {
  try {
    return parseSelector(text, noGroups)
  } catch (cause) {
    throw new ConfigError(path, (cause as Error).message, { code: 'selector_invalid', cause })
  }
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
