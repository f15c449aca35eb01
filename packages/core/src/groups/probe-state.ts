import type { ProbeState } from '../ports.ts'
import type { Question } from './questions.ts'
import { NOT_CHECKED } from './states.ts'

/** Returns the last answer of a probe, as it is shown. */
export function toProbeState({ probe, what, result, since }: Question): ProbeState {
  const { key, kind = 'function' } = probe
  const answer = result ?? { available: false, unknown: true, reason: NOT_CHECKED }
  return Object.freeze({ key, kind, ...(what === undefined ? {} : { what }), ...answer, since })
}
