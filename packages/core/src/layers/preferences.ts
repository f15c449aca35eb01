import { type Reason, reason } from '../decision/reason.ts'
import { type Bits, bitsWhere, isEmpty, noBits, setBit } from '../tools/bits.ts'
import { type GroupSelectors, matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** What a user has switched off for himself. */
export interface SwitchedOff {
  readonly groups: readonly string[]
  /** Ids. */
  readonly tools: readonly string[]
}

const TOLD = {
  message: 'the user has switched it off',
  suggestion: 'The user can switch it on again in the preferences.',
}

/**
 * Gives a function that holds back what a user has switched off: one effect for each switch, the same for all who have
 * thrown it, so that those who want the same share what is decided.
 */
export function createPreferenceEffects(snapshot: Toolset, groups: GroupSelectors): (off: SwitchedOff) => Effect[] {
  const ofGroups = new Map<string, Effect | undefined>()
  const ofTools = new Map<string, Effect | undefined>()
  const groupEffect = (group: string) => {
    const members = groups.get(group) ?? []
    const bits = bitsWhere(snapshot.size, (i) =>
      members.some((member) => matchesSelector(member, snapshot.tools[i] as Tool, 'possible')),
    )
    return toEffect(
      bits,
      reason('preferences', 'switched_off', `the user has switched off the group ${group}`, { ...TOLD, group }),
    )
  }
  const toolEffect = (id: string) => {
    const bits = noBits(snapshot.size)
    const at = snapshot.indexOf(id)
    if (at !== -1) setBit(bits, at)
    return toEffect(bits, reason('preferences', 'switched_off', 'the user has switched it off', TOLD))
  }
  return (off) => [
    ...off.groups.flatMap((group) => known(ofGroups, group, groupEffect) ?? []),
    ...off.tools.flatMap((id) => known(ofTools, id, toolEffect) ?? []),
  ]
}

function toEffect(bits: Bits, told: Reason): Effect | undefined {
  return isEmpty(bits) ? undefined : { outcome: 'wait', bits, reason: () => told }
}

function known(
  effects: Map<string, Effect | undefined>,
  name: string,
  make: (name: string) => Effect | undefined,
): Effect | undefined {
  if (!effects.has(name)) effects.set(name, make(name))
  return effects.get(name)
}
