import type { Effect } from '../layers/effect.ts'
import { appAvailabilityEffects, appEffects, indexAppGroups } from '../layers/app.ts'
import type { GroupIndex } from '../layers/availability.ts'
import { fixedEffects, indexPolicy } from '../layers/policy.ts'
import type { ParsedApp } from '../apps/app.ts'
import { indexOfRequestTool } from '../tools/own-tool.ts'
import { createPolicySnapshot, type Indexes, type BuiltPolicySnapshot, type World } from './policy-snapshot.ts'

/**
 * Gives a function that answers with today's snapshot as an app has it: what everybody's has, and the app's effects and
 * policies beside it. As nothing is left out, it is never wider; as it is an snapshot, all that asks one asks the app too.
 */
export function createAppPolicySnapshots(
  today: () => BuiltPolicySnapshot,
  app: ParsedApp,
  world: World,
): () => BuiltPolicySnapshot {
  let around: BuiltPolicySnapshot | undefined
  let latest: BuiltPolicySnapshot | undefined
  let indexes: { readonly of: Indexes; readonly own: Indexes; readonly groups: GroupIndex } | undefined
  return () => {
    const now = today()
    if (latest && now === around) return latest
    if (indexes?.of !== now.indexes) indexes = indexApp(now.indexes, app)
    const heldBack: readonly Effect[] = [
      ...now.heldBack,
      ...appAvailabilityEffects(indexes.groups, app, world.availability),
    ]
    around = now
    latest = { ...createPolicySnapshot(indexes.own, heldBack, world), indexes: indexes.own, heldBack }
    return latest
  }
}

function indexApp(of: Indexes, app: ParsedApp): { of: Indexes; own: Indexes; groups: GroupIndex } {
  const first = of.policies.length
  const added = app.policies.map((policy, i) => indexPolicy(policy, first + i, of.snapshot))
  const own: Indexes = {
    ...of,
    policies: [...of.policies, ...added],
    fixed: [
      ...of.fixed,
      ...appEffects(of.snapshot, app, indexOfRequestTool(of.snapshot)),
      ...added.flatMap(fixedEffects),
    ],
  }
  return { of, own, groups: indexAppGroups(of.snapshot, app) }
}
