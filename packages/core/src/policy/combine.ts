import type { CombinedPolicies, Policies } from './policy.ts'

/**
 * Combines policies in the open: the result is a list in which each still answers for itself,
 * and a tool is decided by the strictest of the answers. Denies, asks and required tags add
 * up, allowlists intersect, the order does not matter.
 *
 * @example
 * createGate({ tools, policy: combinePolicies(baseline, policyFromEnv(process.env), { deny: ['tag:payments'] }) })
 */
export function combinePolicies(...policies: readonly (Policies | undefined)[]): CombinedPolicies {
  return policies.flatMap((policy) => policy ?? []) as readonly unknown[] as CombinedPolicies
}
