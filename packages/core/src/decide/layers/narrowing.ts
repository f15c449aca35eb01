import { type Bits, bitsWhere, invertBits } from '../../tools/bits.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { reason } from '../decision.ts'
import type { Effect } from '../evaluation.ts'

/** The tools of a snapshot, grouped by the scopes they require. Most snapshots have few different lists. */
export type ScopeIndex = readonly { readonly scopes: readonly string[]; readonly bits: Bits }[]

export function indexScopes(snapshot: Toolset): ScopeIndex {
  const lists = new Map<string, readonly string[]>()
  for (const { requiredScopes } of snapshot) {
    if (requiredScopes.length > 0) lists.set(requiredScopes.join('\0'), requiredScopes)
  }
  return [...lists].map(([key, scopes]) => ({
    scopes,
    bits: bitsWhere(snapshot.size, (i) => snapshot.tools[i]?.requiredScopes.join('\0') === key),
  }))
}

/**
 * Denies the tools that require a scope which the caller lacks. A tool that lacks only scopes which callers may still get
 * stays visible, and the check `step up` refuses its call.
 */
export function scopeEffects(
  index: ScopeIndex,
  held: readonly string[] = [],
  stepUp: readonly string[] = [],
): Effect[] {
  return index.flatMap(({ scopes, bits }): Effect[] => {
    const missing = scopes.filter((scope) => !held.includes(scope))
    if (missing.length === 0) return []
    const why = `the caller lacks the scope ${missing.join(', ')}`
    return missing.every((scope) => stepUp.includes(scope))
      ? [{ outcome: 'ask', bits, reason: () => reason('scopes', 'scope_step_up', why, { scopes: missing }) }]
      : [{ outcome: 'deny', bits, reason: () => reason('scopes', 'scope_missing', why) }]
  })
}

/** Hides the tools that this run's visibility did not return. */
export function visibilityEffects(snapshot: Toolset, shown: ReadonlySet<string>): Effect[] {
  const bits = bitsWhere(snapshot.size, (i) => shown.has(snapshot.ids[i] as string))
  const why = reason('visibility', 'visibility_hidden', "this run's visibility does not show it")
  return [{ outcome: 'deny', bits: invertBits(bits, snapshot.size), reason: () => why }]
}

/** Hides everything, because the visibility failed. */
export function failedVisibilityEffects(snapshot: Toolset, failure: string): Effect[] {
  const why = reason('visibility', 'visibility_error', `this run's visibility failed: ${failure}`)
  return [{ outcome: 'deny', bits: bitsWhere(snapshot.size, () => true), reason: () => why }]
}

/** Hides the tools that are not active in this step. `[]` hides all. */
export function stepEffects(snapshot: Toolset, activeTools: readonly string[]): Effect[] {
  const active = new Set(activeTools)
  const bits = bitsWhere(snapshot.size, (i) => active.has(snapshot.ids[i] as string))
  const why = reason('step', 'step_inactive', 'it is not among the active tools of this step')
  return [{ outcome: 'wait', bits: invertBits(bits, snapshot.size), isOfStep: true, reason: () => why }]
}
