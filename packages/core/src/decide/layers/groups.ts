import type { AvailabilitySource, GroupState } from '../../ports/ports.ts'
import { type Bits, bitsWhere, isEmpty, withoutBit } from '../../tools/bits.ts'
import type { Groups, Group, UnlockRule } from '../../tools/groups.ts'
import { indexOfRequestTool } from '../../tools/own-tool.ts'
import { matchesSelector } from '../../tools/selector.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { openToolOf } from '../../tools/open-names.ts'
import { reason } from '../decision.ts'
import type { Effect } from '../evaluation.ts'

/** The tools of each group that can hold tools back: conditional and locked groups. */
export type GroupIndex = ReadonlyMap<string, Bits>

export function indexGroups(snapshot: Toolset, groups: Groups): GroupIndex {
  const index = new Map<string, Bits>()
  // Sorted by name, so that the order in which groups were written changes no answer.
  for (const name of [...new Set([...groups.conditional.keys(), ...groups.locked.keys()])].toSorted()) {
    const selectors = groups.selectors.get(name) ?? []
    const bits = bitsWhere(snapshot.size, (i) =>
      selectors.some((selector) => matchesSelector(selector, at(snapshot, i), 'possible')),
    )
    if (!isEmpty(bits)) index.set(name, bits)
  }
  return index
}

/** Holds back the tools of each conditional group that is unavailable or requires an unavailable one. */
export function availabilityEffects(index: GroupIndex, groups: Groups, source: AvailabilitySource): Effect[] {
  const effects: Effect[] = []
  for (const [name, bits] of index) {
    const conditional = groups.conditional.get(name)
    if (!conditional) continue
    const { requires, group } = conditional
    const blockedBy = requires.find((below) => !stateOf(source, below).available)
    if (blockedBy === undefined) continue
    const state = stateOf(source, blockedBy)
    const because = state.reason ?? 'it is switched off'
    const cause = blockedBy === name ? because : `${blockedBy} is unavailable because ${because}`
    const why = reason(
      'availability',
      'group_unavailable',
      state.detail === undefined ? cause : `${cause}: ${state.detail}`,
      {
        group: name,
        message: state.detail === undefined ? undefined : cause,
        suggestion: state.suggestion ?? groups.conditional.get(blockedBy)?.group.suggestion ?? group.suggestion,
        since: state.since,
      },
    )
    effects.push({ outcome: 'wait', bits, reason: () => why })
  }
  return effects
}

/** An unknown state counts as unavailable. */
export function stateOf(source: AvailabilitySource, group: string): GroupState {
  try {
    return source.get(group) ?? { available: false, unknown: true, reason: 'it has not been checked yet' }
  } catch {
    return { available: false, reason: 'its availability cannot be found out' }
  }
}

function at(snapshot: Toolset, index: number) {
  return snapshot.tools[index] as Toolset['tools'][number]
}

/** Returns the tools of each locked group, without the `request_tools` that opens groups. */
export function indexLocks(index: GroupIndex, groups: Groups, snapshot: Toolset): GroupIndex {
  const opener = indexOfRequestTool(snapshot)
  const locked = [...index].filter(([name]) => groups.locked.has(name))
  return new Map(
    locked.map(([name, bits]) => [name, withoutBit(bits, opener)] as const).filter(([, bits]) => !isEmpty(bits)),
  )
}

/**
 * Holds back the tools of each locked group that this session has not opened, except those that it has opened alone.
 *
 * A caller without a session cannot open groups. Locks then only shorten lists, which is up to the meta-tools, so there are
 * no effects here.
 */
export function lockEffects(
  index: GroupIndex,
  groups: Groups,
  open: ReadonlySet<string>,
  session: string | undefined,
  snapshot: Toolset,
): Effect[] {
  if (session === undefined) return []
  // In the order of the index, by name, so that the order in which groups were written changes no answer.
  return [...index].flatMap(([name, bits]) => {
    const group = groups.locked.get(name)
    if (group === undefined || open.has(name)) return []
    const closed = open.size === 0 ? bits : stillClosed(name, bits, open, snapshot)
    return isEmpty(closed) ? [] : [lockEffect(name, group, closed)]
  })
}

function stillClosed(group: string, bits: Bits, open: ReadonlySet<string>, snapshot: Toolset): Bits {
  const start = openToolOf(group, '')
  let closed = bits
  for (const name of open)
    if (name.startsWith(start)) closed = withoutBit(closed, snapshot.indexOf(name.slice(start.length)))
  return closed
}

function lockEffect(name: string, group: Group & { readonly unlock: UnlockRule }, bits: Bits): Effect {
  const why = reason('locks', 'group_locked', `the group ${name} is locked for this session`, {
    group: name,
    suggestion: howToOpen(name, group.unlock),
  })
  return { outcome: 'wait', bits, lock: { group: name, unlock: group.unlock }, reason: () => why }
}

/** Returns how a locked group is opened, as a sentence for the model. */
export function howToOpen(name: string, rule: UnlockRule): string {
  if (rule === 'request') return `Call request_tools with the group "${name}" to open it.`
  if (rule === 'search') return 'Search for it with search_tools to open it.'
  return `It opens by itself at the event "${rule.event}".`
}

/** Returns those of the groups that an unlock rule opens. */
export function groupsOpenedBy(
  groups: Groups,
  by: { readonly request: string } | { readonly event: string } | { readonly found: Iterable<string> },
  isMember: (group: string, tool: string) => boolean,
): readonly string[] {
  const opens = ([name, { unlock }]: [string, { unlock: UnlockRule }]): boolean => {
    if ('request' in by) return unlock === 'request' && name === by.request
    if ('event' in by) return typeof unlock === 'object' && unlock.event === by.event
    return unlock === 'search' && [...by.found].some((tool) => isMember(name, tool))
  }
  return [...groups.locked].filter(opens).map(([name]) => name)
}
