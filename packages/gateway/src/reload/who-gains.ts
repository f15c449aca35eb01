import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Caller, createGate, type Gate } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import type { Source } from '@toolgate/core/toolset'
import { toApps, toGroups } from '../catalog/groups.ts'
import type { Revision } from '../revision.ts'

/** What the configured callers with one name gain and lose by a reload, of the tools that are known now. */
export interface AccessChange {
  readonly caller: string
  readonly gains: readonly string[]
  readonly loses: readonly string[]
}

/** Ids that are named for one caller. */
const MAX_NAMED = 100
/** Callers that are looked at. */
const MAX_CALLERS = 1000

type Rules = Pick<Revision, 'policy' | 'groups' | 'aliases' | 'apps' | 'servers' | 'callers'>

/**
 * Returns who gains and who loses which tools, resources and prompts: by policy, roles and scopes, and not by what is
 * available just now. Each look takes a turn of its own, as calls go on meanwhile.
 */
export async function whoGains(gate: Gate, before: Rules, after: Rules): Promise<readonly AccessChange[]> {
  await nextTurn()
  const old = createTrial(gate, before)
  await nextTurn()
  const now = createTrial(gate, after)
  try {
    const changes: AccessChange[] = []
    const [had, has] = [agentsOf(before), agentsOf(after)]
    const [seesOld, seesNew] = [createLook(old, before), createLook(now, after)]
    for (const name of [...new Set([...had.keys(), ...has.keys()])].slice(0, MAX_CALLERS)) {
      const [lost, kept] = [await seesOld(had.get(name)), await seesNew(has.get(name))]
      const gains = [...kept].filter((id) => !lost.has(id))
      const loses = [...lost].filter((id) => !kept.has(id))
      if (gains.length + loses.length > 0)
        changes.push({ caller: name, gains: gains.slice(0, MAX_NAMED), loses: loses.slice(0, MAX_NAMED) })
    }
    return changes
  } finally {
    await Promise.all([old.close(), now.close()])
  }
}

/** Returns a gate with the rules of a revision over the items of a gate. It runs nothing, and writes nothing. */
function createTrial(gate: Gate, { policy, groups, aliases, apps, servers }: Rules): Gate {
  const isServed = new Set(servers.map(({ name }) => name))
  const items = [...gate.catalog.snapshot(), ...gate.catalog.items()]
  // It can change, so that a name that nothing has is no error.
  const source: Source = {
    name: 'trial',
    tools: () => items.filter(({ namespace }) => namespace === undefined || isServed.has(namespace)),
    subscribe: () => () => {},
  }
  const unprobed = groups.map((group) => ({ ...group, availableWhen: [], visibility: 'always' as const }))
  const none = {
    servers: [],
    redactor: { redactText: String, redactValue: (value: unknown) => value },
    reaper: NO_REAPER,
  }
  return createGate({
    sources: [source],
    policy,
    groups: new Map([...toGroups(unprobed, none)].map(([name, { unlock: _, ...group }]) => [name, group])),
    apps: toApps(apps),
    ...(aliases && { aliases }),
    onWarning: () => {},
    pins: 'off',
    definitions: 'off',
  })
}

const NO_REAPER = { watch() {}, release() {} }

function agentsOf({ callers }: Rules): ReadonlyMap<string, readonly Caller[]> {
  const agents = callers.filter((one) => one.for === 'mcp').map(({ caller }) => caller)
  return Map.groupBy(agents, ({ user, agent, tenant }) => {
    const name = user ?? agent ?? 'anonymous'
    return tenant === undefined ? name : `${name} of ${tenant}`
  })
}

type Look = (callers: readonly Caller[] | undefined) => Promise<ReadonlySet<string>>

/** Returns what callers see. Those whom the rules cannot tell apart are looked at once. */
function createLook(gate: Gate, rules: Rules): Look {
  const known = tellsUsersApart(rules) ? undefined : new Map<string, ReadonlySet<string>>()
  return async (callers = []) => {
    const ids = new Set<string>()
    for (const caller of new Map(callers.map((one) => [callerKey(one), one])).values()) {
      const { user: _user, agent: _agent, ...rest } = caller
      const key = callerKey(rest)
      const visible = known?.get(key) ?? (await visibleTo(gate, caller))
      known?.set(key, visible)
      for (const id of visible) ids.add(id)
    }
    return ids
  }
}

/** A condition that reads a caller in any other way than these may tell users apart. */
const OTHER_READ = /caller(?!\.(?:roles|tenant|scopes|attributes)\b)/

function tellsUsersApart({ policy, groups, apps }: Rules): boolean {
  return OTHER_READ.test(JSON.stringify([policy, groups, apps]))
}

async function visibleTo(gate: Gate, caller: Caller): Promise<ReadonlySet<string>> {
  await nextTurn()
  const view = await gate.view(caller)
  const ids = new Set(view.ids)
  for (const kind of ['resource', 'template', 'prompt'] as const) for (const { id } of view.items(kind)) ids.add(id)
  return ids
}
