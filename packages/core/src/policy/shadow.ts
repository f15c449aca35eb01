import type { ParsedClause, ParsedPolicy } from './parse.ts'

/** Splits a policy. The enforced part is as if the shadow part were not written. */
export function partsOf(policy: ParsedPolicy): {
  readonly enforced: ParsedPolicy
  readonly shadow: ParsedPolicy | undefined
} {
  if (policy.isShadow) return { enforced: { ...EMPTY, name: policy.name, path: policy.path }, shadow: policy }
  const { deny, ask } = policy
  if (![...deny, ...ask].some(isShadow)) return { enforced: policy, shadow: undefined }
  const rest = { ...EMPTY, name: policy.name, path: policy.path }
  return {
    enforced: { ...policy, deny: deny.filter(isEnforced), ask: ask.filter(isEnforced) },
    shadow: { ...rest, deny: deny.filter(isShadow), ask: ask.filter(isShadow) },
  }
}

/** Returns the enforced parts of policies, without empty ones. */
export function enforcedOf(policies: readonly ParsedPolicy[]): readonly ParsedPolicy[] {
  return policies.filter(({ isShadow: whole }) => !whole).map((policy) => partsOf(policy).enforced)
}

/** A policy without any effect, also on resources and prompts. */
const EMPTY: Omit<ParsedPolicy, 'name' | 'path'> = {
  allow: undefined,
  deny: [],
  ask: [],
  requireTags: [],
  decide: undefined,
  kinds: [],
  isShadow: false,
  isPart: true,
}

function isShadow(clause: ParsedClause): boolean {
  return clause.isShadow
}

function isEnforced(clause: ParsedClause): boolean {
  return !clause.isShadow
}
