import type { ClauseCoverage } from '../decide/coverage.ts'
import { parseHooks } from '../call/hooks.ts'
import { type Apps, createApps } from './apps.ts'
import type { Caller } from '../ports/caller.ts'
import type { Budget } from '../call/budgets.ts'
import type { RunHistory } from '../history/histories.ts'
import type { RunOfCall } from '../ports/ports.ts'
import { createPolicySnapshots, type World } from '../decide/policy-snapshot.ts'
import type { Unlisted } from '../decide/unlisted.ts'
import { isItemId } from '../tools/tool-id.ts'
import { type Toolset, unknownTools } from '../tools/toolset.ts'
import type { Approvals } from '../call/approvals.ts'
import type { CallPorts } from '../call/attempt.ts'
import { GateClosedError } from '../call/outcome.ts'
import { checkShape, ConfigError } from '@toolgate/values'
import { groupsOpenedBy } from '../decide/layers/groups.ts'
import { createNeeds, type Need } from '../groups/needs.ts'
import type { Loads } from '../groups/loads.ts'
import type { Halt, HaltRequest, HaltTarget } from '../state/halts.ts'
import type { Pins } from '../state/pins/pins.ts'
import type { GateNotice } from '../audit/gate-events.ts'
import { fieldUsesOf, lintFields } from '../policy/field-lint.ts'
import { lintLookAlikes } from '../policy/look-alikes.ts'
import { lintPatterns } from '../policy/pattern-lint.ts'
import { lintRuns } from '../policy/run-lint.ts'
import { lintAll, type LintWarning } from '../policy/lint.ts'
import type { Policies } from '../policy/policy.ts'
import { createPolicyStack, type PolicyStack } from '../policy/document.ts'
import type { Catalog } from '../tools/catalog.ts'
import { noGroupIsNamed, type Group, type Groups } from '../tools/groups.ts'
import { matchesSelector, parseSelector } from '../tools/selector.ts'
import type { Unlocks } from '../groups/unlocks.ts'
import type { Tool } from '../tools/tool.ts'
import type { UserPreferences } from '../state/preferences.ts'
import type { View, ViewHost } from './view.ts'
import { rememberGate } from './view-of.ts'
import { createViews, type ViewOptions } from './views.ts'
import {
  type GateOptions,
  type OwnToolName,
  type NamedGateOptions,
  type NativeGateOptions,
  type RecordGateOptions,
  type ForkOptions,
  type GateRules,
  FORK,
} from './options.ts'
import { createParts, type Shared, revisionsOf } from './parts.ts'

/** The long-lived, shareable object: catalog, policy and stores. */
export interface Gate<Name extends string = string, Native = unknown> {
  /** For the compiler only: the framework's own tools that the gate was made of. */
  readonly '~native'?: Native
  readonly catalog: Catalog
  readonly policyRevision: number
  /**
   * Returns the view of a caller now. Equal callers share a view.
   *
   * @throws {ToolgateError} `caller_invalid`; `app_unknown`; `tool_unknown` for a name in `activeTools` that the
   * catalog
   * has never seen
   */
  view(caller: Caller, options?: ViewOptions<Name>): Promise<View<Name>>
  /**
   * Replaces the policy, atomically: the next decision is by the new one, also in runs under way.
   *
   * @throws {ConfigError} and keeps the old one, if the new one cannot be used
   */
  setPolicy(policy: Policies<Name>): void
  /**
   * Replaces the tools, sources, groups, apps, aliases, limits and the policy, as one: no decision is by some of the old and
   * some of the new. What is not given is gone. Sources that stay are not read again, and counts of limits survive.
   *
   * `alongside` runs in the same turn, after the check of the new rules and before they hold: for what else changes with
   * them.
   *
   * @throws {ConfigError} and keeps the old ones, if the new ones cannot be used; on a fork; and for groups with `load`
   */
  setRules(rules: GateRules, alongside?: () => void): void
  /**
   * Returns a tighter gate over the same live catalog, groups, limits and stores. A later change that tightens this
   * gate tightens the fork, too. A change of the fork does not reach this gate.
   *
   * `inherit: false` replaces this gate's policy instead of adding to it: the one exception to "layers only
   * tighten", and only on a gate that is not itself a fork.
   *
   * @throws {ConfigError} for a policy that cannot be used, for `inherit: false` without a policy, and on a fork
   */
  fork(options: ForkOptions<Name>): Gate<Name, Native>
  /** Opening locked groups, for one session each. */
  readonly locks: Locks
  /** Groups whose tools are loaded at their first use. */
  readonly loads: Loads
  /**
   * The ids of a group's tools, visible or not: of those that all callers share, or of a caller's.
   *
   * @throws {ConfigError} for an unknown group, naming the nearest one
   */
  membersOf(group: string, caller?: Caller): readonly string[]
  /**
   * Settings that are allowed but probably a mistake: selectors of policies, groups, limits, caps, apps and halts that name no
   * tool,
   * tools that nobody can see, names that look alike.
   */
  lint(): readonly LintWarning[]
  /** Returns how often each clause of its policies and apps has held when a call was decided, in the order of the clauses. */
  coverage(): readonly ClauseCoverage[]
  readonly approvals: Approvals
  /**
   * Stops all that the target names, here at once and on every replica within a second: calls that come, that wait for
   * an approval or a slot, and those that run, which are aborted. Resolves when the state store has it.
   *
   * @throws {ConfigError} for a target or reason that cannot be used
   * @throws {ToolgateError} `state_unavailable` where the store did not take it: it then holds in this process only
   */
  halt(request: HaltRequest): Promise<Halt>
  /** Ends a halt, named by its target or its id. @throws {ToolgateError} `halt_unknown`, `state_unavailable` */
  release(target: (HaltTarget | { readonly id: string }) & { readonly by?: string | undefined }): Promise<Halt>
  readonly halts: readonly Halt[]
  /**
   * Returns how many calls of this process wait or run that a halt of a target would stop.
   *
   * @throws {ConfigError} for a target that cannot be used
   */
  underWay(target: HaltTarget): number
  /** What has happened in runs, and for callers without one, as far as rules read it. */
  readonly histories: RunHistories
  /**
   * Returns what is left of the budgets of limits with a `cost`, the least left first: of those that calls through this gate have
   * asked for, the latest ones. Default: 100; at most 1,000 are known.
   */
  budgets(limit?: number): Promise<readonly Budget[]>
  /** The remembered definitions of the tools. */
  readonly pins: Pick<Pins, 'list' | 'accept'>
  readonly apps: Apps
  /**
   * Lists what must work for the tools of an app to be available: servers, ports, URLs, commands, variables and
   * functions, each once, with its state as last checked. Without an app, what all groups need.
   *
   * @throws {ToolgateError} `app_unknown`
   */
  needsOf(app?: string): readonly Need[]
  /** The tools and groups that users have switched off for themselves. The host authenticates the caller. */
  readonly preferences: Pick<UserPreferences, 'get' | 'set'>
  /**
   * Calls the listener at each change of policy, halts, pins, preferences, connections and approvals. Returns a function that ends
   * it.
   */
  subscribe(listener: (notice: GateNotice) => void): () => void
  /** Resolves when no call is under way, through this gate and its forks. */
  idle(): Promise<void>
  /**
   * Ends the gate and its forks: nothing runs through them any longer. Calls that wait are refused, calls that run are
   * aborted.
   * Resolves when every call has left its terminal record, so an audit is closed after that. On a fork it does nothing.
   */
  close(): Promise<void>
}

export interface RunHistories {
  /** Returns what has happened; `undefined` where nothing has, or where no rule reads it. */
  read(caller: Caller, run?: RunOfCall): Promise<RunHistory | undefined>
  /** Forgets what has happened in a run that is over, which makes room for others. A later call of it begins anew. */
  end(caller: Caller, run: RunOfCall): Promise<void>
}

/** Opens locked groups. Each method returns the groups that it has opened. */
export interface Locks {
  /** The groups that a session must open, by name. */
  readonly groups: ReadonlyMap<string, Group>
  /** The host saw a real call of `request_tools`. */
  request(caller: Caller, group: string): readonly string[]
  /** Opens the groups that wait for this event. */
  event(caller: Caller, name: string): readonly string[]
  /** A search of this caller found these tools. */
  found(caller: Caller, tools: Iterable<string>): readonly string[]
  /** Locks everything again: the session has ended. */
  forget(caller: Caller): void
}

/**
 * Returns a gate.
 *
 * @throws {ConfigError} for a tool, policy, group or limit that cannot be used
 * @example
 * const gate = createGate({ tools: [search, remove], policy: { deny: ['tag:danger'] } })
 * const view = await gate.view({ user: 'vera' })
 * const outcome = await view.call({ tool: 'search', input: { q: 'gates' } })
 */
export function createGate<Native, Alias extends string = never>(
  options: NativeGateOptions<Native, Alias>,
): Gate<(keyof Native & string) | OwnToolName, Native>
export function createGate<Name extends string, Alias extends string = never>(
  options: NamedGateOptions<Name, Alias>,
): Gate<Name | OwnToolName>
export function createGate(options?: GateOptions | RecordGateOptions): Gate
export function createGate(
  options: GateOptions | NamedGateOptions<string> | NativeGateOptions<object> | RecordGateOptions = {},
): Gate {
  const parts = createParts(options, () => gate)
  const gate = openGate(parts.shared, parts.ports, parts.policies, { isFork: false, tightens: undefined })
  parts.start()
  return gate
}

interface Lineage {
  readonly isFork: boolean
  /** The ports of the gate whose policy holds here, too. */
  readonly tightens: CallPorts | undefined
}

function openGate(shared: Shared, ports: CallPorts, stack: PolicyStack, { isFork, tightens }: Lineage): Gate {
  const { rules, catalog, unlocks, halts, pins, availability, parse, approvals, visibilityDeadlineMs, stepUp } = shared
  const { recorder, subscribe, loads, preferences, connections, changes, unlisted } = shared
  const groupsNow = () => rules.now.groups
  const world: World = {
    changes,
    catalog,
    get groups() {
      return groupsNow()
    },
    availability,
    hostAvailability: shared.hostAvailability,
    unlocks,
    halts,
    pins,
    preferences,
    connections,
    stepUp,
    policies: stack.current,
  }
  const today = createPolicySnapshots(world)
  const { apps, hostOf } = createApps(() => rules.now.apps, today, world)
  const host: ViewHost = {
    ports,
    app: undefined,
    today,
    groups: groupsNow,
    rules,
    parsePolicy: (policy) => parse(policy, 'narrow.policy'),
    checkNames: (ids) => checkNames(ids, catalog, unlisted),
    unlisted,
  }
  const membersOf = (group: string, caller?: Caller): readonly string[] => {
    const { selectors: all } = groupsNow()
    const selectors = all.get(group)
    if (!selectors) throw new ConfigError('group', noGroupIsNamed([group], all.keys()))
    const isMember = (tool: Tool) => selectors.some((selector) => matchesSelector(selector, tool, 'possible'))
    const { snapshot } = caller ? catalog.of(caller) : { snapshot: catalog.snapshot() }
    return snapshot.tools.flatMap((tool) => (isMember(tool) ? [tool.id] : []))
  }
  const openView = createViews(host, visibilityDeadlineMs, { hostOf, hasApp: (name) => rules.now.apps.has(name) })
  const viewAndLoad: Gate['view'] = (caller, options) => {
    const view = openView(caller, options)
    // A refused view uses nothing.
    if (loads.hasUnused())
      void loads.useAfter(view, caller, { unlocks, app: rules.now.apps.get(options?.app ?? '')?.info })
    return view
  }
  const gate: Gate = {
    catalog,
    get policyRevision() {
      return stack.current().revision
    },
    view: loads.sources.length === 0 ? openView : viewAndLoad,
    setPolicy(policy) {
      if (policy === undefined)
        throw new ConfigError('setPolicy', 'needs a policy; [] is the one that allows everything')
      stack.replace(parse(policy), () => parse(policy))
      recorder.policyChanged(revisionsOf(stack, catalog, groupsNow()))
    },
    setRules(next, alongside) {
      if (isFork) throw new ConfigError('setRules', 'only a gate that is not itself a fork can have its rules replaced')
      const announce = shared.replaceRules(next, stack, alongside)
      recorder.policyChanged(revisionsOf(stack, catalog, groupsNow()))
      announce()
    },
    fork(options) {
      checkShape('fork', options, FORK)
      const { policy, hooks, inherit = true } = options
      if (typeof inherit !== 'boolean') throw new ConfigError('fork.inherit', 'must be true or false')
      if (!inherit && policy === undefined)
        throw new ConfigError(
          'fork.policy',
          'is needed with inherit: false, which would leave the fork without a policy',
        )
      if (!inherit && isFork) {
        throw new ConfigError('fork.inherit', 'only a gate that is not itself a fork can have its policy replaced')
      }
      const forkPorts = { ...ports, hooks: [...parseHooks(hooks), ...ports.hooks] }
      return openGate(
        shared,
        forkPorts,
        createPolicyStack({
          own: parse(policy, 'fork.policy'),
          changes,
          parent: inherit ? stack : undefined,
          groups: groupsNow,
          again: () => parse(policy, 'fork.policy'),
        }),
        {
          isFork: true,
          tightens: inherit ? ports : undefined,
        },
      )
    },
    locks: createLocks(groupsNow, unlocks, membersOf, (wanted) => loads.use(wanted)),
    loads,
    membersOf,
    lint: () => [
      ...lintAll(stack.current().parsed, groupsNow().selectors, catalog.snapshot(), {
        written: [...rules.now.written, ...halts.selectors()],
        unlisted: catalog.unlisted,
        others: { items: catalog.items(), sources: catalog.sources },
      }),
      ...lintFields([...fieldUsesOf(stack.current().parsed), ...rules.now.costs], catalog.snapshot(), catalog.unlisted),
      ...lintPatterns(stack.current().parsed),
      ...lintLookAlikes(stack.current().parsed, catalog.snapshot()),
      ...lintRuns(stack.current().parsed, catalog.snapshot(), rules.now.labels),
    ],
    coverage: () =>
      ports.coverage.of(
        [...stack.current().parsed, ...[...rules.now.apps.values()].flatMap(({ policies }) => policies)],
        [catalog.snapshot(), catalog.items()],
      ),
    approvals,
    async halt(request) {
      if (!catalog.dynamic) checkTarget(request, groupsNow(), catalog)
      const { halt, stored } = halts.set(request)
      recorder.halted(halt)
      if (halt.target.tool !== undefined)
        rules.now.names.check([
          { path: 'halt.tool', selector: parseSelector(halt.target.tool, groupsNow().selectors, 'servers') },
        ])
      await stored
      return halt
    },
    async release({ by, ...target }) {
      const { halt, stored } = halts.release(target, (released) => recorder.released(released, by))
      await stored
      return halt
    },
    get halts() {
      return halts.list()
    },
    underWay(target) {
      const wouldStop = halts.wouldStop(target)
      return ports.live.count(({ caller, tool }) => wouldStop(caller, tool))
    },
    budgets: (limit = 100) => ports.budgets.list(limit),
    histories: {
      read: async (caller, run) => ports.histories.shown.read(caller, run),
      end: async (caller, run) => ports.histories.end(caller, run),
    },
    pins,
    apps,
    needsOf: createNeeds({ ...shared, toolsOf: apps.toolsOf }),
    preferences,
    subscribe,
    idle: () => ports.live.idle(),
    async close() {
      if (isFork) return
      halts.close()
      pins.close()
      preferences.close()
      connections.close()
      shared.closeGroups()
      shared.unwatchLease()
      catalog.close()
      await ports.live.close(new GateClosedError())
    },
  }
  rememberGate(gate, ports, tightens)
  return gate
}

function createLocks(
  groups: () => Groups,
  unlocks: Unlocks,
  membersOf: (group: string, caller: Caller) => readonly string[],
  onOpened: (opened: readonly string[]) => void,
): Locks {
  const openBy = (caller: Caller, by: Parameters<typeof groupsOpenedBy>[1]) => {
    const before = unlocks.openFor(caller)
    const opened = groupsOpenedBy(groups(), by, (group, tool) => membersOf(group, caller).includes(tool)).filter(
      (name) => !before.has(name),
    )
    unlocks.open(caller, opened)
    if (caller.session === undefined) return []
    onOpened(opened)
    return opened
  }
  return {
    get groups() {
      return groups().locked
    },
    request: (caller, group) => openBy(caller, { request: group }),
    event: (caller, name) => openBy(caller, { event: name }),
    found: (caller, tools) => openBy(caller, { found: tools }),
    forget: (caller) => unlocks.forget(caller),
  }
}

/** A misspelt name must not look halted to somebody in a hurry. */
function checkTarget({ tool }: HaltTarget, groups: Groups, catalog: Catalog): void {
  if (typeof tool !== 'string') return
  const selector = parseSelector(tool, groups.selectors, 'servers')
  const snapshot = catalog.snapshot()
  const isNamed = (set: Toolset) => set.tools.some((one) => matchesSelector(selector, one, 'possible'))
  if (isNamed(snapshot) || isNamed(catalog.items())) return
  throw unknownTools([tool], snapshot.ids)
}

function checkNames(names: readonly string[], catalog: Catalog, unlisted: Unlisted): void {
  // `null`, as it comes from a request, would otherwise be no list, and narrow nothing.
  if (!Array.isArray(names)) throw new ConfigError('activeTools', 'must be a list of tool ids; [] for none')
  const wrong = names.findIndex((name) => typeof name !== 'string')
  if (wrong !== -1) throw new ConfigError(`activeTools[${wrong}]`, 'must be the id of a tool')
  const snapshot = catalog.snapshot()
  const unknown = names.filter((name) => !catalog.hasSeen(name) && !unlisted.setFor(name, catalog.items()))
  if (unknown.length > 0)
    throw unknownTools(unknown, unknown.some(isItemId) ? [...snapshot.ids, ...catalog.items().ids] : snapshot.ids)
}
