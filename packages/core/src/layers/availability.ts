import { reason } from '../decision/reason.ts'
import type { AvailabilitySource, GroupState } from '../ports.ts'
import { type Bits, bitsWhere, isEmpty } from '../tools/bits.ts'
import type { Groups } from '../tools/groups.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** The tools of each group that can hold them back: conditional ones, and locked ones. */
export type GroupIndex = ReadonlyMap<string, Bits>

export function indexGroups(snapshot: Toolset, groups: Groups): GroupIndex {
  const index = new Map<string, Bits>()
  // By name, so that the order in which groups were written changes no answer.
  for (const name of [...new Set([...groups.conditional.keys(), ...groups.locked.keys()])].toSorted()) {
    const selectors = groups.selectors.get(name) ?? []
    const bits = bitsWhere(snapshot.size, (i) =>
      selectors.some((selector) => matchesSelector(selector, at(snapshot, i), 'possible')),
    )
    if (!isEmpty(bits)) index.set(name, bits)
  }
  return index
}

/** Holds back the tools of each conditional group that is not available, or stands on one that is not. */
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
    const why = blockedBy === name ? because : `${blockedBy} is unavailable because ${because}`
    const told = reason(
      'availability',
      'group_unavailable',
      state.detail === undefined ? why : `${why}: ${state.detail}`,
      {
        group: name,
        message: state.detail === undefined ? undefined : why,
        suggestion: state.suggestion ?? groups.conditional.get(blockedBy)?.group.suggestion ?? group.suggestion,
        since: state.since,
      },
    )
    effects.push({ outcome: 'wait', bits, reason: () => told })
  }
  return effects
}

/** What cannot be found out counts as unavailable. */
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
