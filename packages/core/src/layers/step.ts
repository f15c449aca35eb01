import { reason } from '../decision/reason.ts'
import { bitsWhere, invertBits } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** Sets aside the tools that are not active in this step. `[]` leaves none. */
export function stepEffects(snapshot: Toolset, activeTools: readonly string[]): Effect[] {
  const active = new Set(activeTools)
  const bits = bitsWhere(snapshot.size, (i) => active.has(snapshot.ids[i] as string))
  const told = reason('step', 'step_inactive', 'it is not among the active tools of this step')
  return [{ outcome: 'wait', bits: invertBits(bits, snapshot.size), isOfStep: true, reason: () => told }]
}
