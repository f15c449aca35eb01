import type { AccessChange } from '../../model/reload.ts'
import type { Caller, Gate, Tool } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import { createTrial } from '@toolgate/change/internal'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { Revision } from '../../auth/revision.ts'

/** The maximum number of ids that are named for one caller. */
const MAX_NAMED = 100
/** The maximum number of callers that are compared. */
const MAX_CALLERS = 1000

type RulesOfRevision = Pick<Revision, 'policy' | 'groups' | 'aliases' | 'apps' | 'servers' | 'callers'>

/** A comparison of two revisions of the rules, over the currently known items. */
interface RevisionComparison {
  /**
   * Returns which callers gain or lose which tools, resources and prompts by policy, roles and scopes. The current
   * availability is ignored. Each caller takes a separate turn, as calls continue meanwhile. Call it once.
   */
  whoGains(): Promise<readonly AccessChange[]>
}

/**
 * Returns a comparison of two revisions, which no longer depends on the gate. `people`: those who signed in. @throws {ConfigError} for rules that a
 * gate rejects
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
        const looks = [createLook(old, before), createLook(now, after)] as const
        const groups = groupsOf(people, [before, after].some(tellsUsersApart))
        const agents = [agentsOf(before), agentsOf(after)] as const
        return await findChanges(looks, agents[0], agents[1], groups)
      } finally {
        await Promise.all([old.close(), now.close()])
      }
    },
  }
}

type Agents = ReadonlyMap<string, readonly Caller[]>

async function findChanges(
  [seesOld, seesNew]: readonly [CallerLook, CallerLook],
  had: Agents,
  has: Agents,
  people: Agents,
): Promise<readonly AccessChange[]> {
  const changes: AccessChange[] = []
  for (const name of [...new Set([...had.keys(), ...has.keys(), ...people.keys()])].slice(0, MAX_CALLERS)) {
    const signedIn = had.has(name) || has.has(name) ? undefined : people.get(name)
    const [lost, kept] = [await seesOld(signedIn ?? had.get(name)), await seesNew(signedIn ?? has.get(name))]
    if (isSame(lost, kept)) continue
    const [before, now] = [new Set(lost), new Set(kept)]
    const gains = kept.filter((id) => !before.has(id))
    const loses = lost.filter((id) => !now.has(id))
    if (gains.length + loses.length > 0)
      changes.push({ caller: name, gains: gains.slice(0, MAX_NAMED), loses: loses.slice(0, MAX_NAMED) })
  }
  return changes
}

/** Returns a gate with the rules of a revision over some items. It runs and writes nothing. */
function openTrial(items: readonly Tool[], rules: RulesOfRevision): Gate {
  const { catalog, callers: _, ...trial } = rulesOfChange(items, { ...rules, limits: [] })
  return createTrial(catalog, trial)
}

function agentsOf({ callers }: RulesOfRevision): Agents {
  const agents = callers.filter((one) => one.for === 'mcp').map(({ caller }) => caller)
  return Map.groupBy(agents, ({ user, agent, tenant }) => {
    const name = user ?? agent ?? 'anonymous'
    return tenant === undefined ? name : `${name} of ${tenant}`
  })
}

/** Returns the people who signed in, by name; those whom the rules cannot tell apart are one group. */
function groupsOf(people: readonly Caller[], isApart: boolean): Agents {
  const groups = Map.groupBy(people, ({ user, agent, ...rest }) => callerKey(isApart ? { user, agent, ...rest } : rest))
  return new Map(
    [...groups.values()].map(([first = {}, ...others]) => {
      const name = first.tenant === undefined ? String(first.user) : `${first.user} of ${first.tenant}`
      return [others.length === 0 ? name : `${name} and ${others.length} more`, [first]]
    }),
  )
}

/** Whether two lists are equal. Both have the order of the catalog, so equal lists are equal at each index. */
function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, i) => id === other[i])
}

type CallerLook = (callers: readonly Caller[] | undefined) => Promise<readonly string[]>

/**
 * Returns a function that returns the items that callers see, in one order. Callers whom the rules cannot distinguish
 * are computed once.
 */
function createLook(gate: Gate, rules: RulesOfRevision): CallerLook {
  const known = tellsUsersApart(rules) ? undefined : new Map<string, readonly string[]>()
  return async (callers = []) => {
    const seen: (readonly string[])[] = []
    for (const caller of new Map(callers.map((one) => [callerKey(one), one])).values()) {
      const { user: _user, agent: _agent, ...rest } = caller
      const key = callerKey(rest)
      const visible = known?.get(key) ?? (await visibleTo(gate, caller))
      known?.set(key, visible)
      seen.push(visible)
    }
    const [only = [], ...more] = seen
    return more.length === 0 ? only : [...new Set(seen.flat())].toSorted()
  }
}

/** Matches a condition that reads a caller in any other way, and so may distinguish users. */
const OTHER_READ = /caller(?!\.(?:roles|tenant|scopes|attributes)\b)/

function tellsUsersApart({ policy, groups, apps }: RulesOfRevision): boolean {
  return OTHER_READ.test(JSON.stringify([policy, groups, apps]))
}

async function visibleTo(gate: Gate, caller: Caller): Promise<readonly string[]> {
  await nextTurn()
  const view = await gate.view(caller)
  const items = (['resource', 'template', 'prompt'] as const).flatMap((kind) => view.items(kind))
  return items.length === 0 ? view.ids : [...view.ids, ...items.map(({ id }) => id)]
}
