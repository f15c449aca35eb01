import type { Policy } from '@toolgate/core'
import { isDeepStrictEqual } from 'node:util'
import { toComparable } from '../config/comparable.ts'
import type { CallerConfig } from '../config/config.ts'
import type { Revision } from './revision.ts'

/** The rules of a revision that are compared. */
export type ComparedRules = Pick<
  Revision,
  'policy' | 'callers' | 'limits' | 'grants' | 'groups' | 'aliases' | 'labels' | 'apps' | 'servers'
>

/**
 * Returns the sections in which a revision is not proven to grant at most the former rights. An empty result means that
 * it only tightens.
 *
 * The proof uses the form of the rules, for any caller, tool and input. A change that tightens in another way counts as
 * unproven.
 */
export function findUnproven(before: ComparedRules, after: ComparedRules): readonly string[] {
  const proofs: Readonly<Record<keyof ComparedRules, boolean>> = {
    policy: orBare(before.policy).every((old) => orBare(after.policy).some((now) => isTighterPolicy(old, now))),
    callers: isWithout(before.callers, after.callers) && !leavesKeysOfUser(before.callers, after.callers),
    limits: isTighterLimits(before.limits, after.limits),
    grants: isTighterGrants(before.grants, after.grants),
    groups: isDeepStrictEqual(before.groups, after.groups),
    aliases: isDeepStrictEqual(before.aliases, after.aliases),
    labels: isTighterLabels(before.labels, after.labels),
    apps: isWithout(before.apps ?? [], after.apps ?? []),
    // If one of two servers that could own a URI is removed, the URI belongs to the other.
    servers: isDeepStrictEqual(before.servers.map(toComparable), after.servers.map(toComparable)),
  }
  return Object.entries(proofs).flatMap(([section, isProven]) => (isProven ? [] : [section]))
}

/** Without a policy, or with a policy without an allowlist, all tools are allowed and all other items are not. */
function orBare(policies: readonly Policy[]): readonly Policy[] {
  return policies.length === 0 ? [{}] : policies
}

/**
 * Whether a policy is at least as tight as a former one. The strictest policy decides, so each former policy needs
 * such a current one.
 */
function isTighterPolicy(
  { name: _name, allow: oldAllow, deny: oldDeny, ask: oldAsk, requireTags: oldTags, ...old }: Policy,
  { name: _now, allow, deny, ask, requireTags, ...now }: Policy,
): boolean {
  if (!isDeepStrictEqual(old, now)) return false
  const allows = oldAllow === undefined ? !allow?.some(namesItems) : allow !== undefined && hasAll(oldAllow, allow)
  return allows && hasAll(deny, oldDeny) && hasAll(ask, oldAsk) && hasAll(requireTags, oldTags)
}

/**
 * Whether an allowlist names resources or prompts. An absent allowlist allows every tool, and no resource or prompt.
 */
function namesItems(clause: NonNullable<Policy['allow']>[number]): boolean {
  const { match } = typeof clause === 'string' ? { match: clause } : clause
  return [match].flat().some((selector) => /^(?:resource|prompt):/.test(selector))
}

function hasAll(all: readonly unknown[] = [], some: readonly unknown[] = []): boolean {
  const known = new Set(all.map((one) => JSON.stringify(one)))
  return some.every((one) => known.has(JSON.stringify(one)))
}

/** Whether a list only lost entries: the rest is unchanged and in the same order. */
function isWithout(before: readonly unknown[], after: readonly unknown[]): boolean {
  let at = 0
  return after.every((one) => {
    while (at < before.length && !isDeepStrictEqual(before[at], one)) at++
    return at++ < before.length
  })
}

/**
 * Whether a key is removed while its user keeps others. A made key that names no source opens nothing while those keys
 * differ, so the removal could open it.
 */
function leavesKeysOfUser(before: readonly CallerConfig[], after: readonly CallerConfig[]): boolean {
  const idOf = ({ for: use, caller }: CallerConfig) => JSON.stringify([use, caller.tenant, caller.user])
  const kept = new Set(after.map((one) => Buffer.from(one.keyHash).toString('hex')))
  const users = new Set(after.map(idOf))
  return before.some((one) => !kept.has(Buffer.from(one.keyHash).toString('hex')) && users.has(idOf(one)))
}

/**
 * Whether labels only tighten. A label can only tighten and trust can only loosen, so no label may be removed and no
 * trust added.
 */
function isTighterLabels(
  { trusted: oldTrusted, ...before }: NonNullable<ComparedRules['labels']> = {},
  { trusted, ...after }: NonNullable<ComparedRules['labels']> = {},
): boolean {
  const now = new Map(Object.entries(after))
  return hasAll(oldTrusted, trusted) && Object.entries(before).every(([label, old]) => hasAll(now.get(label), old))
}

/** Whether no grant may be made, or used, that could not before. */
function isTighterGrants(before: ComparedRules['grants'], after: ComparedRules['grants']): boolean {
  if (after === undefined) return true
  if (before === undefined) return false
  const isOther = before.by === undefined || after.by === before.by
  return isOther && after.maxMs <= before.maxMs && after.maxUses <= before.maxUses
}

type Limit = ComparedRules['limits'][number]

/** Whether each limit still exists with at most the same number of calls. Additional limits only tighten. */
function isTighterLimits(before: readonly Limit[], after: readonly Limit[]): boolean {
  const now = Map.groupBy(after.map(partsOf), ({ key }) => key)
  return before.map(partsOf).every(({ key, max }) => now.get(key)?.some((one) => one.max <= max) ?? false)
}

function partsOf(limit: Limit): { readonly key: string; readonly max: number } {
  if (typeof limit !== 'string') {
    const { max, ...rest } = limit
    return { key: JSON.stringify(Object.entries(rest).toSorted(([one], [other]) => (one < other ? -1 : 1))), max }
  }
  const [, match, max, seconds] = /^(.+):(\d+)\/(\d+)$/.exec(limit) ?? []
  return { key: `${match}/${seconds}`, max: Number(max) }
}
