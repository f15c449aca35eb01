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
import { unknownTools } from '../tools/toolset.ts'
import type { Approvals } from '../call/approvals.ts'
import type { Grants } from '../call/granting.ts'
import type { CallPorts } from '../call/attempt.ts'
import { GateClosedError } from '../call/outcome.ts'
import { checkShape, ConfigError } from '@toolgate/values'
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
import type { UserPreferences } from '../state/preferences.ts'
import type { View, ViewHost } from './view.ts'
import { halt, release } from './halting.ts'
import { createLocks, type Locks, membersOf } from './locks.ts'
import { rememberGate } from './view-of.ts'
import { createViews, type ViewOptions } from './views.ts'
import {
  type OwnToolName,
  type CheckedGateOptions,
  type ListKey,
  type NamesOf,
  type ForkOptions,
  type GateRules,
  FORK,
} from './options.ts'
import { type AnyOptions, createParts, type Shared, revisionsOf } from './parts.ts'

/** The long-lived, shareable object that holds the catalog, the policy and the stores. */
export interface Gate<Name extends string = string, Native = unknown> {
  /** For the compiler only: the framework's own tools that the gate was created from. */
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
   * Replaces the policy atomically. The next decision uses the new one, also in runs under way.
   *
   * @throws {ConfigError} for an invalid policy; the gate keeps the old one
   */
  setPolicy(policy: Policies<Name>): void
  /**
   * Replaces the tools, sources, groups, apps, aliases, limits and the policy together: no decision mixes old and new
   * rules. What is not given is removed. Sources that stay are not read again, and counts of limits survive.
   *
   * `alongside` runs synchronously after the new rules are checked and before they take effect. Use it for state that must
   * change together with them.
   *
   * @throws {ConfigError} for invalid rules, in which case the gate keeps the old ones; on a fork; and for groups with
   * `load`
   */
  setRules(rules: GateRules, alongside?: () => void): void
  /**
   * Returns a tighter gate over the same live catalog, groups, limits and stores. A later change that tightens this gate
   * tightens the fork, too. A change of the fork does not affect this gate.
   *
   * `inherit: false` replaces this gate's policy instead of adding to it: the one exception to "layers only tighten", and
   * only on a gate that is not itself a fork.
   *
   * @throws {ConfigError} for an invalid policy, for `inherit: false` without a policy, and on a fork
   */
  fork(options: ForkOptions<Name>): Gate<Name, Native>
  /** Opens locked groups, for one session each. */
  readonly locks: Locks
  /** Groups whose tools are loaded at their first use. */
  readonly loads: Loads
  /**
   * Returns the ids of a group's tools, visible or not. Without a caller, only tools that all callers share.
   *
   * @throws {ConfigError} for an unknown group, naming the nearest one
   */
  membersOf(group: string, caller?: Caller): readonly string[]
  /**
   * Returns warnings about settings that are allowed but are probably mistakes: selectors of policies, groups, limits,
   * caps, apps and halts that match no tool, tools that nobody can see, names that look alike.
   */
  lint(): readonly LintWarning[]
  /**
   * Returns how often each clause of the gate's policies and apps has held when a call was decided, in the order of the
   * clauses.
   */
  coverage(): readonly ClauseCoverage[]
  readonly approvals: Approvals
  /** The grants that approvers have made. `approvals.decide` makes them. */
  readonly grants: Grants
  /**
   * Stops all calls that the target matches, in this process at once and on every replica within a second. New and waiting
   * calls are refused; running calls are aborted. Resolves when the state store has the halt.
   *
   * @throws {ConfigError} for an invalid target or reason
   * @throws {ToolgateError} `state_unavailable` if the store failed: the halt then holds in this process only
   */
  halt(request: HaltRequest): Promise<Halt>
  /** Ends a halt, identified by its target or its id. @throws {ToolgateError} `halt_unknown`, `state_unavailable` */
  release(target: (HaltTarget | { readonly id: string }) & { readonly by?: string | undefined }): Promise<Halt>
  readonly halts: readonly Halt[]
  /**
   * Returns how many waiting or running calls of this process a halt of this target would stop.
   *
   * @throws {ConfigError} for an invalid target
   */
  underWay(target: HaltTarget): number
  /** The histories of runs, and of callers without a run, as far as rules read them. */
  readonly histories: RunHistories
  /**
   * Returns what is left of the latest budgets that calls through this gate have used, the least left first. A budget is a
   * limit with a `cost`. `limit` defaults to 100; at most 1,000 budgets are known.
   */
  budgets(limit?: number): Promise<readonly Budget[]>
  /** The remembered definitions of the tools. */
  readonly pins: Pick<Pins, 'list' | 'accept'>
  readonly apps: Apps
  /**
   * Lists the servers, ports, URLs, commands, variables and functions that an app's tools need, each once, with its state
   * at the last check. Without an app, lists what all groups need.
   *
   * @throws {ToolgateError} `app_unknown`
   */
  needsOf(app?: string): readonly Need[]
  /** The tools and groups that users have switched off for themselves. The host authenticates the caller. */
  readonly preferences: Pick<UserPreferences, 'get' | 'set'>
  /**
   * Calls the listener at each change of policy, halts, pins, preferences, connections and approvals. Returns a function
   * that unsubscribes.
   */
  subscribe(listener: (notice: GateNotice) => void): () => void
  /** Resolves when no call is under way through this gate and its forks. */
  idle(): Promise<void>
  /**
   * Closes the gate and its forks. Waiting calls are refused and running calls are aborted. Resolves when every call has
   * written its terminal record, so close the audit afterwards. On a fork it does nothing.
   */
  close(): Promise<void>
}

export interface RunHistories {
  /** Returns the history of a run; `undefined` if it is empty or no rule reads it. */
  read(caller: Caller, run?: RunOfCall): Promise<RunHistory | undefined>
  /** Deletes the history of a finished run, which makes room for others. A later call of the run starts a new history. */
  end(caller: Caller, run: RunOfCall): Promise<void>
}

/**
 * Creates a gate.
 *
 * @throws {ConfigError} for an invalid tool, policy, group or limit
 * @example
 * const gate = createGate({ tools: [search, remove], policy: { deny: ['tag:danger'] } })
 * const view = await gate.view({ user: 'vera' })
 * const outcome = await view.call({ tool: 'search', input: { q: 'gates' } })
 */
export function createGate<
  Key extends PropertyKey = ListKey,
  Native = unknown,
  Alias extends string = never,
  SourceKey extends PropertyKey = never,
>(
  options: CheckedGateOptions<Key, Native, Alias, SourceKey> = {},
): Gate<`${NamesOf<Key, SourceKey> | OwnToolName}`, Native> {
  const parts = createParts(options as AnyOptions, () => gate)
  const gate = openGate(parts.shared, parts.ports, parts.policies, { isFork: false, tightens: undefined })
  parts.start()
  return gate as Gate<`${NamesOf<Key, SourceKey> | OwnToolName}`, Native>
}

interface GateLineage {
  readonly isFork: boolean
  /** The ports of the parent gate, whose policy applies here, too. */
  readonly tightens: CallPorts | undefined
}

function openGate(shared: Shared, ports: CallPorts, stack: PolicyStack, lineage: GateLineage): Gate {
  const { rules, catalog, halts, loads, recorder } = shared
  const world = worldOf(shared, stack)
  const today = createPolicySnapshots(world)
  const { apps, hostOf } = createApps(() => rules.now.apps, today, world)
  const openView = createViews(hostFor(shared, ports, today), shared.visibilityDeadlineMs, {
    hostOf,
    hasApp: (name) => rules.now.apps.has(name),
  })
  const policyChanged = () => recorder.policyChanged(revisionsOf(stack, catalog, rules.now.groups))
  const gate: Gate = {
    catalog,
    get policyRevision() {
      return stack.current().revision
    },
    view: loads.sources.length === 0 ? openView : loadAfter(openView, shared),
    setPolicy(policy) {
      if (policy === undefined)
        throw new ConfigError('setPolicy', 'needs a policy; [] is the one that allows everything')
      stack.replace(shared.parse(policy), () => shared.parse(policy))
      policyChanged()
    },
    setRules(next, alongside) {
      if (lineage.isFork)
        throw new ConfigError('setRules', 'only a gate that is not itself a fork can have its rules replaced')
      const announce = shared.replaceRules(next, stack, alongside)
      policyChanged()
      announce()
    },
    fork: (options) => openFork(shared, ports, stack, options, lineage),
    locks: createLocks(shared),
    loads,
    membersOf: (group, caller) => membersOf(shared, group, caller),
    lint: () => lintGate(shared, stack),
    coverage: () => coverageOf(shared, ports, stack),
    approvals: shared.approvals,
    grants: shared.grants,
    halt: (request) => halt(shared, request),
    release: (target) => release(shared, target),
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
    pins: shared.pins,
    apps,
    needsOf: createNeeds({ ...shared, toolsOf: apps.toolsOf }),
    preferences: shared.preferences,
    subscribe: shared.subscribe,
    idle: () => ports.live.idle(),
    close: async () => (lineage.isFork ? undefined : close(shared, ports)),
  }
  rememberGate(gate, ports, lineage.tightens)
  return gate
}

function worldOf(shared: Shared, stack: PolicyStack): World {
  const { rules, changes, catalog, availability, hostAvailability, unlocks, halts, pins, preferences } = shared
  return {
    changes,
    catalog,
    get groups() {
      return rules.now.groups
    },
    availability,
    hostAvailability,
    unlocks,
    halts,
    pins,
    preferences,
    connections: shared.connections,
    stepUp: shared.stepUp,
    policies: stack.current,
  }
}

function hostFor({ rules, parse, catalog, unlisted }: Shared, ports: CallPorts, today: ViewHost['today']): ViewHost {
  return {
    ports,
    app: undefined,
    today,
    groups: () => rules.now.groups,
    rules,
    parsePolicy: (policy) => parse(policy, 'narrow.policy'),
    checkNames: (ids) => checkNames(ids, catalog, unlisted),
    hasFixedTools: () => !catalog.dynamic,
    unlisted,
  }
}

/** Starts to load the groups that a caller could use, after their view was opened. */
function loadAfter(openView: Gate['view'], { loads, unlocks, rules }: Shared): Gate['view'] {
  return (caller, options) => {
    const view = openView(caller, options)
    // A refused view needs no group.
    if (loads.hasUnused())
      void loads.useAfter(view, caller, { unlocks, app: rules.now.apps.get(options?.app ?? '')?.info })
    return view
  }
}

function openFork(shared: Shared, ports: CallPorts, stack: PolicyStack, options: ForkOptions, of: GateLineage): Gate {
  checkShape('fork', options, FORK)
  const { parse, changes, rules } = shared
  const { policy, hooks, inherit = true } = options
  if (typeof inherit !== 'boolean') throw new ConfigError('fork.inherit', 'must be true or false')
  if (!inherit && policy === undefined)
    throw new ConfigError('fork.policy', 'is needed with inherit: false, which would leave the fork without a policy')
  if (!inherit && of.isFork)
    throw new ConfigError('fork.inherit', 'only a gate that is not itself a fork can have its policy replaced')
  const forkPorts = { ...ports, hooks: [...parseHooks(hooks), ...ports.hooks] }
  const own = createPolicyStack({
    own: parse(policy, 'fork.policy'),
    changes,
    parent: inherit ? stack : undefined,
    groups: () => rules.now.groups,
    again: () => parse(policy, 'fork.policy'),
  })
  return openGate(shared, forkPorts, own, { isFork: true, tightens: inherit ? ports : undefined })
}

function lintGate({ catalog, rules, halts }: Shared, stack: PolicyStack): readonly LintWarning[] {
  const { parsed } = stack.current()
  const tools = catalog.snapshot()
  return [
    ...lintAll(parsed, rules.now.groups.selectors, tools, {
      written: [...rules.now.written, ...halts.selectors()],
      unlisted: catalog.unlisted,
      others: { items: catalog.items(), sources: catalog.sources },
    }),
    ...lintFields([...fieldUsesOf(parsed), ...rules.now.costs], tools, catalog.unlisted),
    ...lintPatterns(parsed),
    ...lintLookAlikes(parsed, tools, rules.now.listed),
    ...rules.now.covered,
    ...lintRuns(parsed, tools, rules.now.labels),
  ]
}

function coverageOf(
  { catalog, rules }: Shared,
  { coverage }: CallPorts,
  stack: PolicyStack,
): readonly ClauseCoverage[] {
  const ofApps = [...rules.now.apps.values()].flatMap(({ policies }) => policies)
  return coverage.of([...stack.current().parsed, ...ofApps], [catalog.snapshot(), catalog.items()])
}

async function close(shared: Shared, { live }: CallPorts): Promise<void> {
  shared.halts.close()
  shared.pins.close()
  shared.preferences.close()
  shared.connections.close()
  shared.closeGroups()
  shared.unwatchLease()
  shared.catalog.close()
  await live.close(new GateClosedError())
}

function checkNames(names: readonly string[], catalog: Catalog, unlisted: Unlisted): void {
  // Rejects `null`, which can come from a request. It would otherwise mean no list and so narrow nothing.
  if (!Array.isArray(names)) throw new ConfigError('activeTools', 'must be a list of tool ids; [] for none')
  const wrong = names.findIndex((name) => typeof name !== 'string')
  if (wrong !== -1) throw new ConfigError(`activeTools[${wrong}]`, 'must be the id of a tool')
  const snapshot = catalog.snapshot()
  const unknown = names.filter((name) => !catalog.hasSeen(name) && !unlisted.setFor(name, catalog.items()))
  if (unknown.length > 0)
    throw unknownTools(unknown, unknown.some(isItemId) ? [...snapshot.ids, ...catalog.items().ids] : snapshot.ids)
}
