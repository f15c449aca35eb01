import type { AccessChange, Reload } from '../../model/reload.ts'
import type { Caller, Gate, Tool } from '@toolgate/core'
import { comparePeople, createTrial, rightsKeyOf } from '@toolgate/change/internal'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { Revision } from '../../auth/revision.ts'

/** The maximum number of ids that are named for one caller. */
const MAX_NAMED = 100
/** The maximum number of changes. */
const MAX_CHANGES = 1000
/** The maximum number of groups of callers with equal rights that are compared. */
const MAX_GROUPS = 2000

type RulesOfRevision = Pick<Revision, 'policy' | 'groups' | 'aliases' | 'apps' | 'servers' | 'callers'>

/** `notCompared`: the number of callers and people who may gain or lose more. */
type AccessChanges = Required<Pick<Reload, 'access' | 'notCompared'>>

/** A comparison of two revisions of the rules, over the currently known items. */
interface RevisionComparison {
  /**
   * Returns which callers gain or lose which tools, resources and prompts by policy, roles and scopes. The current
   * availability is ignored. Each group of callers with equal rights takes a separate turn, as calls continue meanwhile.
   * Call it once.
   */
  whoGains(): Promise<AccessChanges>
}

/**
 * Returns a comparison of two revisions, which no longer depends on the gate. `people`: those who signed in.
 *
 * @throws {ConfigError} for rules that a gate rejects
 */
export async function compareAccess(
  gate: Gate,
  before: RulesOfRevision,
  after: RulesOfRevision,
  people: readonly Caller[] = [],
): Promise<RevisionComparison> {
  await nextTurn()
  const items = [...gate.catalog.snapshot(), ...gate.catalog.items()]
  const old = openTrial(items, before)
  await nextTurn()
  const now = openTrial(items, after)
  return {
    async whoGains() {
      try {
        const agents = await findChanges([await createLook(old), await createLook(now)], before, after)
        const signedIn = await comparePeople({ before: old, after: now }, people, nextTurn)
        const all = [...agents.access, ...signedIn.access.map(({ unknown: _, ...change }) => change)]
        const access = all.slice(0, MAX_CHANGES).map(({ gains, loses, ...change }) => ({
          ...change,
          gains: gains.slice(0, MAX_NAMED),
          loses: loses.slice(0, MAX_NAMED),
        }))
        const left = all.slice(MAX_CHANGES).reduce((sum, { people: count = 1 }) => sum + count, 0)
        return { access, notCompared: agents.notCompared + signedIn.notCompared + left }
      } finally {
        await Promise.all([old.close(), now.close()])
      }
    },
  }
}

/** Returns what the configured agents with one name gain and lose. */
async function findChanges(
  [seesOld, seesNow]: readonly [CallerLook, CallerLook],
  before: RulesOfRevision,
  after: RulesOfRevision,
): Promise<AccessChanges> {
  const [had, has] = [agentsOf(before), agentsOf(after)]
  const access: AccessChange[] = []
  let notCompared = 0
  for (const caller of new Set([...had.keys(), ...has.keys()])) {
    const [lost, kept] = [await seesOld(had.get(caller) ?? []), await seesNow(has.get(caller) ?? [])]
    if (lost === undefined || kept === undefined) notCompared++
    if (lost === undefined || kept === undefined || isSame(lost, kept)) continue
    const [old, now] = [new Set(lost), new Set(kept)]
    const [gains, loses] = [kept.filter((id) => !old.has(id)), lost.filter((id) => !now.has(id))]
    if (gains.length + loses.length > 0) access.push({ caller, gains, loses })
  }
  return { access, notCompared }
}

/** Returns a gate with the rules of a revision over some items. It runs and writes nothing. */
function openTrial(items: readonly Tool[], rules: RulesOfRevision): Gate {
  const { catalog, callers: _, ...trial } = rulesOfChange(items, { ...rules, limits: [] })
  return createTrial(catalog, trial)
}

function agentsOf({ callers }: RulesOfRevision): ReadonlyMap<string, readonly Caller[]> {
  const agents = callers.filter((one) => one.for === 'mcp').map(({ caller }) => caller)
  return Map.groupBy(agents, ({ user, agent, tenant }) => {
    const name = user ?? agent ?? 'anonymous'
    return tenant === undefined ? name : `${name} of ${tenant}`
  })
}

/** Whether two lists are equal. Both have the order of the catalog, so equal lists are equal at each index. */
function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, i) => id === other[i])
}

/** Returns the items that callers see, in one order. `undefined`: too many others were looked at. */
type CallerLook = (callers: readonly Caller[]) => Promise<readonly string[] | undefined>

/** Returns a look that computes callers whom the rules cannot tell apart once. */
async function createLook(gate: Gate): Promise<CallerLook> {
  const keyOf = await rightsKeyOf(gate)
  const known = new Map<string, readonly string[]>()
  return async (callers) => {
    const seen: (readonly string[])[] = []
    for (const [key, caller] of new Map(callers.map((one) => [keyOf(one), one]))) {
      const found = known.get(key)
      if (!found && known.size >= MAX_GROUPS) return undefined
      const visible = found ?? (await visibleTo(gate, caller))
      known.set(key, visible)
      seen.push(visible)
    }
    const [only = [], ...more] = seen
    return more.length === 0 ? only : [...new Set(seen.flat())].toSorted()
  }
}

async function visibleTo(gate: Gate, caller: Caller): Promise<readonly string[]> {
  await nextTurn()
  const view = await gate.view(caller)
  const items = (['resource', 'template', 'prompt'] as const).flatMap((kind) => view.items(kind))
  return items.length === 0 ? view.ids : [...view.ids, ...items.map(({ id }) => id)]
}
