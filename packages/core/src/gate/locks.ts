import { groupOfOpen, openToolOf } from '../tools/open-names.ts'
import { groupsOpenedBy } from '../decide/layers/groups.ts'
import type { Caller } from '../ports/caller.ts'
import { type Group, noGroupIsNamed } from '../tools/groups.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { ConfigError } from '@toolgate/values'
import type { Shared } from './parts.ts'

/** Opens locked groups. Each method returns the groups that it opened. */
export interface Locks {
  /** The groups that a session must open, by name. */
  readonly groups: ReadonlyMap<string, Group>
  /**
   * Opens a group by request, or only some of its tools. Call it when a model called `request_tools`. Tools that the group
   * does not have stay as they are.
   */
  request(caller: Caller, group: string, tools?: readonly string[]): readonly string[]
  /** Opens the groups that wait for this event. */
  event(caller: Caller, name: string): readonly string[]
  /** Opens the groups whose tools a search of this caller found. */
  found(caller: Caller, tools: Iterable<string>): readonly string[]
  /** Returns what the caller's session has opened, for `reopen`: groups, and single tools of groups. */
  opened(caller: Caller): ReadonlySet<string>
  /** Opens what a session had opened before it continued in this process. Only of groups that are locked now. */
  reopen(caller: Caller, opened: readonly string[]): void
  /** Locks all groups again, because the session has ended. */
  forget(caller: Caller): void
}

export function createLocks(shared: Pick<Shared, 'rules' | 'catalog' | 'unlocks' | 'loads'>): Locks {
  const { rules, unlocks, loads } = shared
  const isMember = (caller: Caller) => (group: string, tool: string) => membersOf(shared, group, caller).includes(tool)
  const openBy = (caller: Caller, by: Parameters<typeof groupsOpenedBy>[1]) => {
    const before = unlocks.openFor(caller)
    const opened = groupsOpenedBy(rules.now.groups, by, isMember(caller)).filter((name) => !before.has(name))
    unlocks.open(caller, opened)
    if (caller.session === undefined) return []
    loads.use(opened)
    return opened
  }
  const requestTools = (caller: Caller, group: string, tools: readonly string[]) => {
    const before = unlocks.openFor(caller)
    if (caller.session === undefined || rules.now.groups.locked.get(group)?.unlock !== 'request') return []
    loads.use([group])
    const members = new Set(membersOf(shared, group, caller))
    const names = tools.filter((tool) => members.has(tool)).map((tool) => openToolOf(group, tool))
    const opened = before.has(group) ? [] : names.filter((name) => !before.has(name))
    unlocks.open(caller, opened)
    return opened.length === 0 ? [] : [group]
  }
  return {
    get groups() {
      return rules.now.groups.locked
    },
    request: (caller, group, tools) =>
      tools === undefined ? openBy(caller, { request: group }) : requestTools(caller, group, tools),
    event: (caller, name) => openBy(caller, { event: name }),
    found: (caller, tools) => openBy(caller, { found: tools }),
    opened: (caller) => unlocks.openFor(caller),
    reopen(caller, opened) {
      const { locked } = rules.now.groups
      const known = opened.filter((name) => locked.has(groupOfOpen(name)))
      unlocks.open(caller, known)
      loads.use(known.map(groupOfOpen))
    },
    forget: (caller) => unlocks.forget(caller),
  }
}

/**
 * Returns the ids of a group's tools. Without a caller, only tools that all callers share.
 *
 * @throws {ConfigError} for an unknown group, naming the nearest one
 */
export function membersOf(
  { rules, catalog }: Pick<Shared, 'rules' | 'catalog'>,
  group: string,
  caller?: Caller,
): readonly string[] {
  const { selectors: all } = rules.now.groups
  const selectors = all.get(group)
  if (!selectors) throw new ConfigError('group', noGroupIsNamed([group], all.keys()))
  const isMember = (tool: Tool) => selectors.some((selector) => matchesSelector(selector, tool, 'possible'))
  const { snapshot } = caller ? catalog.of(caller) : { snapshot: catalog.snapshot() }
  return snapshot.tools.flatMap((tool) => (isMember(tool) ? [tool.id] : []))
}
