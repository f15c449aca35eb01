import { ConfigError } from '../errors.ts'
import { type GroupSelectors, parseSelector, type Selector } from './selector.ts'

/** A named, reusable set of tools. */
export interface Group {
  /** Selectors, `group:` excepted. */
  readonly tools: readonly string[]
  /** `conditional`: its tools are offered only while the group is available. Default `always`. */
  readonly visibility?: 'always' | 'conditional'
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

/** The groups of a gate, checked: every name known, no cycle. */
export interface Groups {
  readonly selectors: GroupSelectors
  /** Those that can be unavailable, with every conditional group each stands on, the nearest first. */
  readonly conditional: ReadonlyMap<string, { readonly group: Group; readonly standsOn: readonly string[] }>
  /** Those that a session must open, by name. */
  readonly locked: ReadonlyMap<string, Group & { readonly unlock: UnlockRule }>
}

/** @throws {ConfigError} naming the group and what is wrong: an unknown dependency, a cycle, a selector */
export function parseGroups(groups: Readonly<Record<string, Group>> | ReadonlyMap<string, Group> = {}): Groups {
  const byName: ReadonlyMap<string, Group> = groups instanceof Map ? groups : new Map(Object.entries(groups))
  const selectors = new Map<string, readonly Selector[]>()
  const conditional = new Map<string, { group: Group; standsOn: readonly string[] }>()
  const locked = new Map<string, Group & { readonly unlock: UnlockRule }>()
  for (const [name, group] of byName) {
    if (!Array.isArray(group?.tools)) throw new ConfigError(`groups.${name}.tools`, 'must be a list of selectors')
    selectors.set(
      name,
      group.tools.map((text, i) => memberSelector(`groups.${name}.tools[${i}]`, text)),
    )
    const standsOn = closure(name, byName).filter((below) => byName.get(below)?.visibility === 'conditional')
    if (standsOn.length > 0) conditional.set(name, { group, standsOn })
    if (group.unlock !== undefined)
      locked.set(name, { ...group, unlock: checkUnlock(`groups.${name}.unlock`, group.unlock) })
  }
  return { selectors, conditional, locked }
}

function checkUnlock(path: string, rule: UnlockRule): UnlockRule {
  if (rule === 'request' || rule === 'search') return rule
  if (typeof rule === 'object' && rule !== null && typeof rule.event === 'string' && rule.event !== '') return rule
  throw new ConfigError(path, 'must be request, search or { event: <name> }')
}

function memberSelector(path: string, text: string): Selector {
  try {
    return parseSelector(text)
  } catch (cause) {
    throw new ConfigError(path, (cause as Error).message, { code: 'selector_invalid', cause })
  }
}

/** Gives a group and all that it stands on, itself first. */
function closure(start: string, groups: ReadonlyMap<string, Group>): string[] {
  const found = new Set<string>()
  const visit = (name: string, trail: readonly string[]) => {
    if (trail.includes(name))
      throw new ConfigError(`groups.${trail[0]}.dependsOn`, `a cycle: ${[...trail, name].join(' → ')}`)
    if (found.has(name)) return
    const group = groups.get(name)
    if (!group)
      throw new ConfigError(
        `groups.${trail.at(-1)}.dependsOn`,
        `no group is named "${name}"; the groups are ${[...groups.keys()].join(', ')}`,
      )
    found.add(name)
    for (const below of group.dependsOn ?? []) visit(below, [...trail, name])
  }
  visit(start, [])
  return [...found]
}
