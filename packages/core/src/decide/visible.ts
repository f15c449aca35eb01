import type { Effect } from '../layers/effect.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { RunBounds } from './decide.ts'
import type { PolicySnapshot } from './policy-snapshot.ts'
import { evaluate, type Evaluation } from './evaluation.ts'

/** Some tools of a snapshot. */
export interface Visible {
  readonly snapshot: Toolset
  readonly bits: Bits
}

/** Gives the tools that are visible in a view and today as well: what `decide` says of each, of all at once. */
export function visibleToday({ evaluation, caller }: RunBounds, today: PolicySnapshot): Visible {
  return { snapshot: evaluation.snapshot, bits: visibleInBoth(evaluation, today.evaluation(caller)) }
}

/** Gives the tools that are visible, and those that would be if a search found them: nothing else holds them back. */
export function findableToday({ evaluation, caller }: RunBounds, today: PolicySnapshot): Visible {
  const first = withoutSearchLocks(evaluation)
  const current = withoutSearchLocks(today.evaluation(caller))
  return { snapshot: evaluation.snapshot, bits: visibleInBoth(first, current) }
}

function visibleInBoth(first: Evaluation, current: Evaluation): Bits {
  const { snapshot } = first
  const { bits: visible } = first.visible
  if (current === first) return visible
  if (current.snapshot === snapshot) return intersect(visible, current.visible.bits, snapshot.size)
  const visibleNow = current.visible.bits
  return bitsWhere(
    snapshot.size,
    (i) => {
      const now = current.snapshot.indexOf(snapshot.ids[i] as string)
      return now !== -1 && hasBit(visibleNow, now)
    },
    visible,
  )
}

function intersect(a: Bits, b: Bits, size: number): Bits {
  const outside = invertBits(a, size)
  addBits(outside, invertBits(b, size))
  return invertBits(outside, size)
}

function withoutSearchLocks(evaluation: Evaluation): Evaluation {
  const { snapshot, effects } = evaluation
  const others = effects.filter((effect) => !isSearchLock(effect))
  return others.length === effects.length ? evaluation : evaluate(snapshot, others)
}

function isSearchLock(effect: Effect): boolean {
  return effect.lock?.unlock === 'search'
}
