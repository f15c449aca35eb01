import type { AccessChange, Reload } from '../../model/reload.ts'
import type { Caller, Gate, Tool } from '@toolgate/core'
import { createTrial, type RightsKey, rightsKeyOf } from '@toolgate/change/internal'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { Revision } from '../../auth/revision.ts'

/** The maximum number of ids that are named for one caller. */
const MAX_NAMED = 100
/** The maximum number of changes. */
const MAX_CHANGES = 1000
/** The maximum number of groups of callers with equal rights that are compared. */
const MAX_GROUPS = 2000
/** The number of people who are named in a row for several. */
const MAX_EXAMPLES = 2

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
        const keys = [await rightsKeyOf(old), await rightsKeyOf(now)] as const
        const asked = [...askAgents(before, after), ...askPeople(people, keys)]
        return await findChanges([createLook(old, keys[0]), createLook(now, keys[1])], asked)
      } finally {
        await Promise.all([old.close(), now.close()])
      }
    },
  }
}

/** The callers of one row, under the rules before and after. */
interface AskedCallers {
  readonly names: readonly string[]
  /** The number of people. 0: configured callers with one name. */
  readonly people: number
  readonly had: readonly Caller[]
  readonly has: readonly Caller[]
}

/** Returns the configured agents by name. */
function askAgents(before: RulesOfRevision, after: RulesOfRevision): readonly AskedCallers[] {
  const [old, now] = [agentsOf(before), agentsOf(after)]
  const names = new Set([...old.keys(), ...now.keys()])
  return [...names].map((name) => ({ names: [name], people: 0, had: old.get(name) ?? [], has: now.get(name) ?? [] }))
}

/** Returns the people in groups whom neither revision can tell apart, the largest group first. */
function askPeople(people: readonly Caller[], [oldKey, nowKey]: readonly [RightsKey, RightsKey]): AskedCallers[] {
  const groups = Map.groupBy(people, (person) => JSON.stringify([oldKey(person), nowKey(person)]))
  const asked = [...groups.values()].map((group): AskedCallers => {
    const one = group.slice(0, 1)
    return { names: group.slice(0, MAX_EXAMPLES).map(nameOf), people: group.length, had: one, has: one }
  })
  return asked.toSorted((a, b) => b.people - a.people)
}

async function findChanges(
  [seesOld, seesNow]: readonly [CallerLook, CallerLook],
  asked: readonly AskedCallers[],
): Promise<AccessChanges> {
  const changes = new Map<string, Omit<AskedCallers, 'had' | 'has'> & Omit<AccessChange, 'caller' | 'people'>>()
  let notCompared = 0
  for (const { had, has, ...row } of asked) {
    const [lost, kept] = [await seesOld(had), await seesNow(has)]
    if (lost === undefined || kept === undefined) notCompared += row.people || 1
    if (lost === undefined || kept === undefined || isSame(lost, kept)) continue
    const [before, now] = [new Set(lost), new Set(kept)]
    const [gains, loses] = [kept.filter((id) => !before.has(id)), lost.filter((id) => !now.has(id))]
    if (gains.length + loses.length === 0) continue
    // People who gain and lose the same are one row.
    const key = JSON.stringify(row.people > 0 ? [gains, loses] : row.names)
    const known = changes.get(key)
    if (!known && changes.size >= MAX_CHANGES) notCompared += row.people || 1
    else if (!known) changes.set(key, { ...row, gains, loses })
    else
      changes.set(key, {
        ...known,
        people: known.people + row.people,
        names: [...known.names, ...row.names].slice(0, MAX_EXAMPLES),
      })
  }
  const access = [...changes.values()].map(({ names, people, gains, loses }): AccessChange => ({
    caller: people > names.length ? `${people} people such as ${names.join(', ')}` : names.join(' and '),
    ...(people > 0 && { people }),
    gains: gains.slice(0, MAX_NAMED),
    loses: loses.slice(0, MAX_NAMED),
  }))
  return { access, notCompared }
}

/** Returns a gate with the rules of a revision over some items. It runs and writes nothing. */
function openTrial(items: readonly Tool[], rules: RulesOfRevision): Gate {
  const { catalog, callers: _, ...trial } = rulesOfChange(items, { ...rules, limits: [] })
  return createTrial(catalog, trial)
}

function agentsOf({ callers }: RulesOfRevision): ReadonlyMap<string, readonly Caller[]> {
  const agents = callers.filter((one) => one.for === 'mcp').map(({ caller }) => caller)
  return Map.groupBy(agents, nameOf)
}

function nameOf({ user, agent, tenant }: Caller): string {
  const name = user ?? agent ?? 'anonymous'
  return tenant === undefined ? name : `${name} of ${tenant}`
}

/** Whether two lists are equal. Both have the order of the catalog, so equal lists are equal at each index. */
function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, i) => id === other[i])
}

/** Returns the items that callers see, in one order. `undefined`: too many others were looked at. */
type CallerLook = (callers: readonly Caller[]) => Promise<readonly string[] | undefined>

/** Returns a look that computes callers whom the rules cannot tell apart once. */
function createLook(gate: Gate, keyOf: RightsKey): CallerLook {
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
