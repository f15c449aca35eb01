import { reason } from '../decision/reason.ts'
import { bitsWhere, invertBits } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** Hides what this run's visibility did not name. */
export function visibilityEffects(snapshot: Toolset, shown: ReadonlySet<string>): Effect[] {
  const bits = bitsWhere(snapshot.size, (i) => shown.has(snapshot.ids[i] as string))
  const told = reason('visibility', 'visibility_hidden', "this run's visibility does not show it")
  return [{ outcome: 'deny', bits: invertBits(bits, snapshot.size), reason: () => told }]
}

/** Hides everything: the visibility failed, and failure refuses. */
export function failedVisibilityEffects(snapshot: Toolset, failure: string): Effect[] {
  const told = reason('visibility', 'visibility_error', `this run's visibility failed: ${failure}`)
  return [{ outcome: 'deny', bits: bitsWhere(snapshot.size, () => true), reason: () => told }]
}
