import type { ParsedPolicy } from '../../policy/parse.ts'
import type { AvailabilitySource } from '../../ports/ports.ts'
import { addBits, type Bits, bitsWhere, invertBits, isEmpty, withoutBit } from '../../tools/bits.ts'
import type { Groups } from '../../tools/groups.ts'
import { matchesSelector, type Selector } from '../../tools/selector.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { reason } from '../decision.ts'
import type { Effect } from '../evaluation.ts'
import { availabilityEffects, type GroupIndex } from './groups.ts'

/** The rules of an app, in the form that decisions need. */
export interface AppRules {
  readonly name: string
  readonly imports: readonly ImportedGroup[]
  /** Tools that the app adds to those of its groups. */
  readonly own: readonly Selector[]
  readonly policies: readonly ParsedPolicy[]
  /** The gate's groups. Groups that this app makes conditional are among the conditional ones. */
  readonly groups: Groups
}

/** A group as an app imports it. */
export interface ImportedGroup {
  readonly group: string
  readonly members: readonly Selector[]
  /** The visibility within the app. Default: the gate's. */
  readonly visibility: 'conditional' | 'hidden' | undefined
}

/** Hides the tools that an app does not offer. `always`: the index of a tool that every app offers, or -1. */
export function appEffects(snapshot: Toolset, { name, imports, own }: AppRules, always = -1): Effect[] {
  const effects: Effect[] = []
  const offered = bitsOf(snapshot, [
    ...own,
    ...imports.flatMap(({ members, visibility }) => (visibility === 'hidden' ? [] : members)),
  ])
  for (const { group, members, visibility } of imports) {
    if (visibility !== 'hidden') continue
    // A tool that may be in a hidden group counts as hidden, even if an offered group has it, too.
    const bits = bitsOf(snapshot, members, 'possible')
    const why = reason('app', 'app_hidden', `the app ${name} hides the group ${group}`, { group })
    addBits(offered, bits)
    if (!isEmpty(bits)) effects.push({ outcome: 'deny', bits, reason: () => why })
  }
  const others = withoutBit(invertBits(offered, snapshot.size), always)
  const why = reason('app', 'app_hidden', `the app ${name} neither imports it nor lists it`)
  if (!isEmpty(others)) effects.push({ outcome: 'deny', bits: others, reason: () => why })
  return effects
}

/** Returns the tools of the groups that only the app, not the gate, makes conditional. */
export function indexAppGroups(snapshot: Toolset, { imports }: AppRules): GroupIndex {
  const index = new Map<string, Bits>()
  const tightened = imports.filter(({ visibility }) => visibility === 'conditional')
  // Sorted by name, so that the order of imports changes no answer.
  for (const { group, members } of tightened.toSorted((a, b) => (a.group < b.group ? -1 : 1))) {
    const bits = bitsOf(snapshot, members, 'possible')
    if (!isEmpty(bits)) index.set(group, bits)
  }
  return index
}

/** Holds back the tools of groups that are unavailable now. */
export function appAvailabilityEffects(index: GroupIndex, { groups }: AppRules, source: AvailabilitySource): Effect[] {
  return index.size === 0 ? [] : availabilityEffects(index, groups, source)
}

function bitsOf(snapshot: Toolset, selectors: readonly Selector[], reading: 'certain' | 'possible' = 'certain'): Bits {
  return bitsWhere(snapshot.size, (i) =>
    selectors.some((selector) => matchesSelector(selector, snapshot.tools[i] as Tool, reading)),
  )
}
