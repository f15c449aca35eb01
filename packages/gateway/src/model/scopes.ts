import type { CallOutcome } from '@toolgate/core'

/** Returns the scopes that a call lacks, if nothing else prevents it. */
export function lackingScopes(outcome: CallOutcome): readonly string[] | undefined {
  if (outcome.status !== 'refused') return undefined
  const [deciding] = outcome.decision.reasons
  return deciding?.code === 'scope_needed' ? deciding.scopes : undefined
}
