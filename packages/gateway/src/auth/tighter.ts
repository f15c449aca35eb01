import type { Policy } from '@toolgate/core'
import { isDeepStrictEqual } from 'node:util'
import { toComparable } from '../config/comparable.ts'
import type { CallerConfig } from '../config/config.ts'
import type { Revision } from './revision.ts'

/** The rules of a revision. */
export type ComparedRules = Pick<
  Revision,
  'policy' | 'callers' | 'limits' | 'groups' | 'aliases' | 'labels' | 'apps' | 'servers'
>

/**
 * Returns the sections in which a revision is not proven to grant no more than the one before. Empty: it only tightens.
 *
 * A proof by form, for any caller, tool and input, and not of what is known now: a change that tightens in another way
 * counts as unproven.
 */
export function findUnproven(before: ComparedRules, after: ComparedRules): readonly string[] {
  const proofs: Readonly<Record<keyof ComparedRules, boolean>> = {
    policy: orBare(before.policy).every((old) => orBare(after.policy).some((now) => isTighterPolicy(old, now))),
    callers: isWithout(before.callers, after.callers) && !leavesKeysOfUser(before.callers, after.callers),
    limits: isTighterLimits(before.limits, after.limits),
    groups: isDeepStrictEqual(before.groups, after.groups),
    aliases: isDeepStrictEqual(before.aliases, after.aliases),
    labels: isTighterLabels(before.labels, after.labels),
    apps: isWithout(before.apps ?? [], after.apps ?? []),
    // Without one of two servers that could own a URI, it belongs to the other.
    servers: isDeepStrictEqual(before.servers.map(toComparable), after.servers.map(toComparable)),
  }
  return Object.entries(proofs).flatMap(([section, isProven]) => (isProven ? [] : [section]))
}

/** Without a policy every tool is allowed and nothing else, as by one without an allowlist. */
function orBare(policies: readonly Policy[]): readonly Policy[] {
  return policies.length === 0 ? [{}] : policies
}

/** Policies are combined by their strictest answer, so each needs one now that allows nothing more. */
function isTighterPolicy(
  { name: _name, allow: oldAllow, deny: oldDeny, ask: oldAsk, requireTags: oldTags, ...old }: Policy,
  { name: _now, allow, deny, ask, requireTags, ...now }: Policy,
): boolean {
  if (!isDeepStrictEqual(old, now)) return false
  const allows = oldAllow === undefined ? !allow?.some(namesItems) : allow !== undefined && hasAll(oldAllow, allow)
  return allows && hasAll(deny, oldDeny) && hasAll(ask, oldAsk) && hasAll(requireTags, oldTags)
}

/** An absent allowlist is that of every tool, and of no resource or prompt. */
function namesItems(clause: NonNullable<Policy['allow']>[number]): boolean {
  const { match } = typeof clause === 'string' ? { match: clause } : clause
  return [match].flat().some((selector) => /^(?:resource|prompt):/.test(selector))
}

function hasAll(all: readonly unknown[] = [], some: readonly unknown[] = []): boolean {
  const known = new Set(all.map((one) => JSON.stringify(one)))
  return some.every((one) => known.has(JSON.stringify(one)))
}

/** Whether a list has nothing that it did not have, unchanged and in the same order. */
function isWithout(before: readonly unknown[], after: readonly unknown[]): boolean {
  let at = 0
  return after.every((one) => {
    while (at < before.length && !isDeepStrictEqual(before[at], one)) at++
    return at++ < before.length
  })
}

/** A made key that does not say which key of its user it is like opens nothing while these differ. */
function leavesKeysOfUser(before: readonly CallerConfig[], after: readonly CallerConfig[]): boolean {
  const idOf = ({ for: use, caller }: CallerConfig) => JSON.stringify([use, caller.tenant, caller.user])
  const kept = new Set(after.map((one) => Buffer.from(one.keyHash).toString('hex')))
  const users = new Set(after.map(idOf))
  return before.some((one) => !kept.has(Buffer.from(one.keyHash).toString('hex')) && users.has(idOf(one)))
}

/** Labels can only tighten, and trust can only loosen: none of the first is taken away, and nothing more is trusted. */
function isTighterLabels(
  { trusted: oldTrusted, ...before }: NonNullable<ComparedRules['labels']> = {},
  { trusted, ...after }: NonNullable<ComparedRules['labels']> = {},
): boolean {
  const now = new Map(Object.entries(after))
  return hasAll(oldTrusted, trusted) && Object.entries(before).every(([label, old]) => hasAll(now.get(label), old))
}

type Limit = ComparedRules['limits'][number]

/** Each limit is still there, for at most as many calls. A further limit only takes away. */
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
