import type { Caller } from '../ports/caller.ts'
import { appAvailabilityEffects, appEffects, type AppRules, indexAppGroups } from './layers/app.ts'
import { availabilityEffects, type GroupIndex, indexGroups, indexLocks, lockEffects } from './layers/groups.ts'
import { indexPolicy, type PolicyIndex } from './layers/clauses.ts'
import { callerEffects, fixedEffects } from './layers/policy.ts'
import { indexScopes, type ScopeIndex, scopeEffects } from './layers/narrowing.ts'
import { type CurrentPolicies, policyDocumentOf } from '../policy/document.ts'
import type { ParsedPolicy } from '../policy/parse.ts'
import type { AvailabilitySource, PolicyDocument } from '../ports/ports.ts'
import type { Catalog } from '../tools/catalog.ts'
import type { CatalogPart } from '../tools/own-lists.ts'
import type { Groups } from '../tools/groups.ts'
import { indexOfRequestTool } from '../tools/own-tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { createBoundedCache, type Revision } from '@toolgate/values'
import { bitsWhere } from '../tools/bits.ts'
import { reason } from './decision.ts'
import { type Effect, evaluate, type Evaluation } from './evaluation.ts'
import { withoutRequestHints } from './requests.ts'

/**
 * The state between two changes: one catalog, one set of policies, one state of the groups.
 *
 * Every decision is made within one snapshot. Any change creates a new one, so an earlier decision is never taken for
 * today's.
 */
export interface PolicySnapshot {
  readonly snapshot: Toolset
  readonly policies: readonly PolicyIndex[]
  readonly policyRevision: number
  readonly policy: PolicyDocument
  readonly catalogRevision: number
  /** The resources, templates and prompts of the catalog. */
  readonly items: Toolset
  /** The snapshot of the tools. For a snapshot of tools, this is the object itself. */
  readonly whole: PolicySnapshot
  /** Returns a snapshot of the same policies and state over items that are not tools. The same object for the same items. */
  over(items: Toolset): PolicySnapshot
  /** Returns the effects of policy and scopes on a caller: the bounds of a run that begins now. */
  boundEffects(caller: Caller): readonly Effect[]
  /**
   * Returns the bound effects combined with availability, pins, halts, preferences, connections and the session's locks.
   * Cached by the caller's identity.
   */
  evaluation(caller: Caller): Evaluation
}

/** Everything that decisions depend on. */
export interface World {
  /** Grows synchronously with every change of a part. */
  readonly changes: Pick<Revision, 'now'>
  readonly catalog: Catalog
  /** Replaced together with the policies. */
  readonly groups: Groups
  readonly availability: AvailabilitySource
  /** `availability`, if the host supplied it. It does not bump `changes`, so its own revision is compared. */
  readonly hostAvailability: AvailabilitySource | undefined
  readonly unlocks: { openFor(caller: Caller): ReadonlySet<string> }
  readonly halts: CallerHolds
  readonly pins: PinSource
  readonly preferences: CallerHolds
  readonly connections: CallerHolds
  /** The scopes without which a tool is still listed. */
  readonly stepUp?: readonly string[] | undefined
  policies(): CurrentPolicies
}

/** A source of restrictions that hold tools back from some callers. */
export interface CallerHolds {
  /** Returns the current restrictions. The result does not change later. */
  now(): EffectsOver
}

/** Returns the effects that hold tools of a snapshot back from a caller: the same objects for the same arguments. */
export type EffectsOver = (snapshot: Toolset) => (caller: Caller) => readonly Effect[]

/** A source of restrictions on all callers, because of tool definitions. */
interface PinSource {
  /** Returns the same list while neither the pins nor the snapshot change. */
  effectsFor(snapshot: Toolset): readonly Effect[]
}

/** A policy snapshot with the parts it was built from. */
export interface BuiltPolicySnapshot extends PolicySnapshot {
  over(items: Toolset): BuiltPolicySnapshot
  readonly indexes: Indexes
  readonly heldBack: readonly Effect[]
  readonly holders: Holders
}

/** Returns today's snapshot, of the shared catalog or of a caller's own. The same object until something changes. */
export type Today<Snapshot = PolicySnapshot> = (caller?: Caller) => Snapshot

export function createPolicySnapshots(world: World): Today<BuiltPolicySnapshot> {
  const { changes, hostAvailability } = world
  let indexes: Indexes | undefined
  let latest: BuiltPolicySnapshot | undefined
  let revision = 0
  let hasOwn = false
  let availabilityRevision: number | undefined
  const build = (): BuiltPolicySnapshot => {
    const current = world.policies()
    const { revision: policyRevision, parsed } = current
    const catalogRevision = world.catalog.revision
    if (indexes?.policyRevision !== policyRevision || indexes.catalogRevision !== catalogRevision) {
      indexes = { policyRevision, catalogRevision, ...indexSnapshot(world, world.catalog.snapshot(), parsed) }
    }
    hasOwn = world.catalog.hasOwn
    return buildPart(indexes, world.catalog.items(), current, world)
  }
  const shared = (): BuiltPolicySnapshot => {
    const now = changes.now
    const availabilityNow = hostAvailability?.revision
    if (latest === undefined || revision !== now || availabilityRevision !== availabilityNow) {
      latest = build()
      // Set after the build, so that the next decision repeats a build that failed.
      revision = now
      availabilityRevision = availabilityNow
    }
    return latest
  }
  const own = new WeakMap<BuiltPolicySnapshot, WeakMap<CatalogPart, BuiltPolicySnapshot>>()
  return (caller) => {
    const whole = shared()
    if (caller === undefined || !hasOwn) return whole
    const part = world.catalog.of(caller)
    if (part.snapshot === whole.snapshot && part.items === whole.items) return whole
    let known = own.get(whole)
    if (!known) own.set(whole, (known = new WeakMap()))
    let found = known.get(part)
    if (!found) {
      const current = world.policies()
      known.set(
        part,
        (found = buildPart(partIndexesOf(whole.indexes, part, current, world), part.items, current, world)),
      )
    }
    return found
  }
}

function buildPart(indexes: Indexes, items: Toolset, current: CurrentPolicies, world: World): BuiltPolicySnapshot {
  // The current state, also for items that are first used later, because the groups may be replaced by then.
  const { groups, unlocks, halts, preferences, connections, stepUp } = world
  const holders: Holders = {
    groups,
    unlocks,
    halts: halts.now(),
    preferences: preferences.now(),
    connections: connections.now(),
    stepUp,
  }
  const heldBack = [
    ...availabilityEffects(indexes.groups, world.groups, world.availability),
    ...world.pins.effectsFor(indexes.snapshot),
  ]
  return withItems(buildOver(indexes, heldBack, holders), items, (others) =>
    buildOver(itemIndexesOf(indexes, others, current, holders), world.pins.effectsFor(others), holders),
  )
}

const partIndexes = new WeakMap<Indexes, WeakMap<Toolset, Indexes>>()

/** Returns indexes of the same policies over the tools of one caller. */
function partIndexesOf(of: Indexes, { snapshot }: CatalogPart, { parsed }: CurrentPolicies, world: World): Indexes {
  if (of.snapshot === snapshot) return of
  let known = partIndexes.get(of)
  if (!known) partIndexes.set(of, (known = new WeakMap()))
  let found = known.get(snapshot)
  if (!found) known.set(snapshot, (found = { ...of, ...indexSnapshot(world, snapshot, parsed) }))
  return found
}

type BuiltOver = Omit<BuiltPolicySnapshot, 'items' | 'whole' | 'over'>

function buildOver(indexes: Indexes, heldBack: readonly Effect[], holders: Holders): BuiltOver {
  return { ...createPolicySnapshot(indexes, heldBack, holders), indexes, heldBack, holders }
}

/** Adds the same policies and state over other items, created at first use. */
function withItems(built: BuiltOver, items: Toolset, buildItems: (items: Toolset) => BuiltOver): BuiltPolicySnapshot {
  const known = new WeakMap<Toolset, BuiltPolicySnapshot>()
  const over = (set: Toolset): BuiltPolicySnapshot => {
    let found = known.get(set)
    if (!found) known.set(set, (found = { ...buildItems(set), items, whole, over }))
    return found
  }
  const whole = { ...built, items, over } as { -readonly [Key in keyof BuiltPolicySnapshot]: BuiltPolicySnapshot[Key] }
  whole.whole = whole
  return whole
}

const itemIndexes = new WeakMap<Indexes, WeakMap<Toolset, Indexes>>()

/** Returns indexes of the same policies over items that are not tools. */
function itemIndexesOf(
  of: Indexes,
  items: Toolset,
  { parsed, isBare }: CurrentPolicies,
  world: Pick<World, 'groups'>,
): Indexes {
  let known = itemIndexes.get(of)
  if (!known) itemIndexes.set(of, (known = new WeakMap()))
  let found = known.get(items)
  if (!found) {
    const indexed = indexSnapshot(world, items, parsed)
    found = { ...of, ...indexed, fixed: isBare ? [...indexed.fixed, nothingAllowed(items)] : indexed.fixed }
    known.set(items, found)
  }
  return found
}

function nothingAllowed({ size }: Toolset): Effect {
  const why = reason('policy', 'policy_not_allowed', 'no policy allows resources and prompts')
  return { outcome: 'deny', bits: bitsWhere(size, () => true), reason: () => why }
}

/** The parts that stay the same while catalog and policies do. */
interface Indexes {
  readonly policyRevision: number
  readonly policy: PolicyDocument
  readonly catalogRevision: number
  readonly snapshot: Toolset
  readonly policies: readonly PolicyIndex[]
  /** The effects of policies on all callers. */
  readonly fixed: readonly Effect[]
  readonly scopes: ScopeIndex
  readonly groups: GroupIndex
  readonly locks: GroupIndex
}

function indexSnapshot(
  world: Pick<World, 'groups'>,
  snapshot: Toolset,
  parsed: readonly ParsedPolicy[],
): Omit<Indexes, 'policyRevision' | 'catalogRevision'> {
  const policies = parsed.map((policy, i) => indexPolicy(policy, i, snapshot))
  const groups = indexGroups(snapshot, world.groups)
  return {
    snapshot,
    policies,
    policy: policyDocumentOf(parsed, world.groups.selectors),
    fixed: policies.flatMap(fixedEffects),
    scopes: indexScopes(snapshot),
    groups,
    locks: indexLocks(groups, world.groups, snapshot),
  }
}

/** The sources of restrictions for some callers. Only the locks of a session can open within a snapshot. */
interface Holders extends Pick<World, 'groups' | 'unlocks' | 'stepUp'> {
  readonly halts: EffectsOver
  readonly preferences: EffectsOver
  readonly connections: EffectsOver
}

function createPolicySnapshot(
  { snapshot, policies, policy, scopes, locks: lockIndex, fixed, policyRevision, catalogRevision }: Indexes,
  heldBack: readonly Effect[],
  { groups, unlocks, halts, preferences, connections, stepUp }: Holders,
): Omit<PolicySnapshot, 'items' | 'whole' | 'over'> {
  const evaluations = new WeakMap<Caller, CallerEvaluation>()
  const everybody = evaluate(snapshot, [...fixed, ...heldBack])
  const passing = new Set(heldBack)
  const haltsOf = halts(snapshot)
  const switchedOffBy = preferences(snapshot)
  const unconnectedOf = connections(snapshot)
  const share = createSharing()
  const known = (caller: Caller): CallerEvaluation => {
    const open = caller.session === undefined ? NOTHING_OPEN : unlocks.openFor(caller)
    let found = evaluations.get(caller)
    if (found?.open !== open) {
      const own = found?.own ?? [
        ...policies.flatMap((one) => callerEffects(one, caller)),
        ...scopeEffects(scopes, caller.scopes, stepUp),
      ]
      const locks = lockEffects(lockIndex, groups, open, caller.session, snapshot)
      const held = [...haltsOf(caller), ...switchedOffBy(caller), ...unconnectedOf(caller)]
      const evaluation = () => withoutRequestHints(evaluate(snapshot, [...own, ...locks, ...held], everybody))
      found = share(open, [...own, ...held], locks, () => ({ open, own, evaluation: evaluation() }))
      evaluations.set(caller, found)
    }
    return found
  }
  return {
    snapshot,
    policies,
    policyRevision,
    policy,
    catalogRevision,
    evaluation: (caller) => known(caller).evaluation,
    boundEffects: (caller) => [...everybody.effects.filter((effect) => !passing.has(effect)), ...known(caller).own],
  }
}

/** A caller without a session opens no group. */
const NOTHING_OPEN: ReadonlySet<string> = new Set()

const MAX_SHARED = 1000

/** Shares one evaluation among all callers for whom the same clauses hold, as they see the same tools. */
function createSharing() {
  const numbers = new WeakMap<object, number>()
  const shared = createBoundedCache<string, CallerEvaluation>(MAX_SHARED)
  let next = 0
  const numberOf = (thing: object): number => {
    let number = numbers.get(thing)
    if (number === undefined) numbers.set(thing, (number = next++))
    return number
  }
  return (
    open: object,
    own: readonly Effect[],
    locks: readonly Effect[],
    make: () => CallerEvaluation,
  ): CallerEvaluation => {
    let key = `${numberOf(open)}`
    for (const effect of own) key += ` ${numberOf(effect)}`
    // A locked group has one set of tools and one reason.
    for (const { bits } of locks) key += ` lock ${numberOf(bits)}`
    let evaluation = shared.get(key)
    if (!evaluation) shared.set(key, (evaluation = make()))
    return evaluation
  }
}

interface CallerEvaluation {
  readonly open: ReadonlySet<string>
  /** The effects of policy and scopes on the caller. */
  readonly own: readonly Effect[]
  readonly evaluation: Evaluation
}

/**
 * Returns a function for today's snapshot within an app: the gate's snapshot, with the app's effects and policies added. It
 * is never wider than the gate's.
 */
export function createAppPolicySnapshots(
  today: Today<BuiltPolicySnapshot>,
  app: AppRules,
  world: World,
): Today<BuiltPolicySnapshot> {
  const known = new WeakMap<BuiltPolicySnapshot, BuiltPolicySnapshot>()
  const indexed = new WeakMap<Indexes, ReturnType<typeof indexApp>>()
  const build = (around: BuiltPolicySnapshot): BuiltPolicySnapshot => {
    let indexes = indexed.get(around.indexes)
    if (!indexes) indexed.set(around.indexes, (indexes = indexApp(around.indexes, app)))
    const heldBack: readonly Effect[] = [
      ...around.heldBack,
      ...appAvailabilityEffects(indexes.groups, app, world.availability),
    ]
    return withItems(buildOver(indexes.own, heldBack, around.holders), around.items, (items) => {
      const above = around.over(items)
      return buildOver(appItemIndexesOf(above.indexes, app), above.heldBack, above.holders)
    })
  }
  let latest: { readonly around: BuiltPolicySnapshot; readonly within: BuiltPolicySnapshot } | undefined
  return (caller) => {
    const around = today(caller)
    if (latest?.around === around) return latest.within
    let within = known.get(around)
    if (!within) known.set(around, (within = build(around)))
    latest = { around, within }
    return within
  }
}

const appItemIndexes = new WeakMap<AppRules, WeakMap<Indexes, Indexes>>()

function appItemIndexesOf(of: Indexes, app: AppRules): Indexes {
  let known = appItemIndexes.get(app)
  if (!known) appItemIndexes.set(app, (known = new WeakMap()))
  let found = known.get(of)
  if (!found) known.set(of, (found = indexApp(of, app).own))
  return found
}

function indexApp(of: Indexes, app: AppRules): { readonly own: Indexes; readonly groups: GroupIndex } {
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
  return { own, groups: indexAppGroups(of.snapshot, app) }
}
