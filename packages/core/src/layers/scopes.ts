import { reason } from '../decision/reason.ts'
import { type Bits, bitsWhere } from '../tools/bits.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** The tools of a snapshot by the scopes they require; most snapshots have few different lists. */
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

/** Denies the tools that require a scope which the caller does not hold. */
export function scopeEffects(index: ScopeIndex, held: readonly string[] = []): Effect[] {
  return index.flatMap(({ scopes, bits }) => {
    const missing = scopes.filter((scope) => !held.includes(scope))
    if (missing.length === 0) return []
    return [
      {
        outcome: 'deny',
        bits,
        reason: () => reason('scopes', 'scope_missing', `the caller lacks the scope ${missing.join(', ')}`),
      },
    ]
  })
}
