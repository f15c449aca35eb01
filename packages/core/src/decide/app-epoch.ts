import type { Mark } from '../layers/mark.ts'
import { appAvailabilityMarks, appMarks, indexAppGroups } from '../layers/app.ts'
import type { GroupIndex } from '../layers/availability.ts'
import { fixedMarks, indexPolicy } from '../layers/policy.ts'
import type { ParsedApp } from '../apps/app.ts'
import { indexOfRequestTool } from '../tools/own-tool.ts'
import { createEpoch, type Indexes, type MadeEpoch, type World } from './epoch.ts'

/**
 * Gives a function that answers with today's epoch as an app has it: what everybody's has, and the app's marks and
 * policies beside it. As nothing is left out, it is never wider; as it is an epoch, all that asks one asks the app too.
 */
export function createAppEpochs(today: () => MadeEpoch, app: ParsedApp, world: World): () => MadeEpoch {
  let around: MadeEpoch | undefined
  let epoch: MadeEpoch | undefined
  let indexes: { readonly of: Indexes; readonly own: Indexes; readonly groups: GroupIndex } | undefined
  return () => {
    const now = today()
    if (epoch && now === around) return epoch
    if (indexes?.of !== now.indexes) indexes = indexApp(now.indexes, app)
    const heldBack: readonly Mark[] = [
      ...now.heldBack,
      ...appAvailabilityMarks(indexes.groups, app, world.availability),
    ]
    around = now
    epoch = { ...createEpoch(indexes.own, heldBack, world), indexes: indexes.own, heldBack }
    return epoch
  }
}

function indexApp(of: Indexes, app: ParsedApp): { of: Indexes; own: Indexes; groups: GroupIndex } {
  const first = of.policies.length
  const added = app.policies.map((policy, i) => indexPolicy(policy, first + i, of.snapshot))
  const own: Indexes = {
    ...of,
    policies: [...of.policies, ...added],
    fixed: [...of.fixed, ...appMarks(of.snapshot, app, indexOfRequestTool(of.snapshot)), ...added.flatMap(fixedMarks)],
  }
  return { of, own, groups: indexAppGroups(of.snapshot, app) }
}
