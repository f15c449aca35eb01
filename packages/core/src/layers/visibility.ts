import { reason } from '../decision/reason.ts'
import { bitsWhere, invertBits } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Mark } from './mark.ts'

/** Hides what this run's visibility did not name. */
export function visibilityMarks(snapshot: Toolset, shown: ReadonlySet<string>): Mark[] {
  const bits = bitsWhere(snapshot.size, (i) => shown.has(snapshot.ids[i] as string))
  const told = reason('visibility', 'visibility_hidden', "this run's visibility does not show it")
  return [{ outcome: 'deny', bits: invertBits(bits, snapshot.size), reason: () => told }]
}

/** Hides everything: the visibility failed, and failure refuses. */
export function failedVisibilityMarks(snapshot: Toolset, failure: string): Mark[] {
  const told = reason('visibility', 'visibility_error', `this run's visibility failed: ${failure}`)
  return [{ outcome: 'deny', bits: bitsWhere(snapshot.size, () => true), reason: () => told }]
}
