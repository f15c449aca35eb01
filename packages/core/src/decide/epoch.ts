import type { Caller } from '../caller.ts'
import { availabilityMarks, type GroupIndex, indexGroups } from '../layers/availability.ts'
import { indexLocks, lockMarks } from '../layers/locks.ts'
import type { Mark } from '../layers/mark.ts'
import { callerMarks, fixedMarks, indexPolicy, type PolicyIndex } from '../layers/policy.ts'
import { indexScopes, type ScopeIndex, scopeMarks } from '../layers/scopes.ts'
import { policyDocumentOf } from '../policy/document.ts'
import type { ParsedPolicy } from '../policy/parse.ts'
import type { AvailabilitySource, PolicyDocument } from '../ports.ts'
import type { Catalog } from '../tools/catalog.ts'
import type { Groups } from '../tools/groups.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Halts } from '../halts/halts.ts'
import type { UserPreferences } from '../preferences/preferences.ts'
import type { Unlocks } from '../unlocks.ts'
import { createBoundedCache } from './cache.ts'
import { tellRequests } from './requests.ts'
import { rule, type Ruling } from './ruling.ts'

/**
 * The world between two changes: one snapshot, one set of policies, one state of the groups.
 *
 * Everything is decided within one; a change of anything makes a new one, so nothing that was
 * decided before can be taken for today's answer.
 */
export interface Epoch {
  readonly snapshot: Toolset
  readonly policies: readonly PolicyIndex[]
  readonly policyRevision: number
  readonly policy: PolicyDocument
  readonly catalogRevision: number
  /** What policy and scopes say to a caller: the ceiling of a run that begins now. */
  ceilingMarks(caller: Caller): readonly Mark[]
  /** Those, and availability, pins, halts, preferences and the session's locks, cached by the caller's identity. */
  ruling(caller: Caller): Ruling
}

export interface World {
  readonly catalog: Catalog
  readonly groups: Groups
  readonly availability: AvailabilitySource
  readonly unlocks: Unlocks
  readonly halts: Pick<Halts, 'revision' | 'marksOver'>
  readonly pins: PinSource
  readonly preferences: Pick<UserPreferences, 'revision' | 'marksOver'>
  policies(): { readonly revision: number; readonly parsed: readonly ParsedPolicy[] }
}

/** What holds tools back from everybody because of what they say of themselves. */
export interface PinSource {
  readonly revision: number
  /** The same list for as long as neither changes. */
  marksFor(snapshot: Toolset): readonly Mark[]
}

/** An epoch with what it is made of. */
export interface MadeEpoch extends Epoch {
  readonly indexes: Indexes
  readonly heldBack: readonly Mark[]
}

/** Gives a function that answers with today's epoch: the same one until something changes. */
export function createEpochs(world: World): () => MadeEpoch {
  let indexes: Indexes | undefined
  let epoch: (MadeEpoch & Revisions) | undefined
  return () => {
    const { revision: policyRevision, parsed } = world.policies()
    const catalogRevision = world.catalog.revision
    const availabilityRevision = world.availability.revision
    const lockRevision = world.unlocks.revision
    const haltRevision = world.halts.revision
    const pinRevision = world.pins.revision
    const preferenceRevision = world.preferences.revision
    if (
      epoch?.policyRevision === policyRevision &&
      epoch.catalogRevision === catalogRevision &&
      epoch.availabilityRevision === availabilityRevision &&
      epoch.lockRevision === lockRevision &&
      epoch.haltRevision === haltRevision &&
      epoch.pinRevision === pinRevision &&
      epoch.preferenceRevision === preferenceRevision
    ) {
      return epoch
    }
    if (indexes?.policyRevision !== policyRevision || indexes.catalogRevision !== catalogRevision) {
      indexes = { policyRevision, catalogRevision, ...indexSnapshot(world, world.catalog.snapshot(), parsed) }
    }
    const heldBack = [
      ...availabilityMarks(indexes.groups, world.groups, world.availability),
      ...world.pins.marksFor(indexes.snapshot),
    ]
    const revisions = { availabilityRevision, lockRevision, haltRevision, pinRevision, preferenceRevision }
    epoch = { ...createEpoch(indexes, heldBack, world), indexes, heldBack, ...revisions }
    return epoch
  }
}

/** Of all that is held back for the moment. */
interface Revisions {
  readonly availabilityRevision: number
  readonly lockRevision: number
  readonly haltRevision: number
  readonly pinRevision: number
  readonly preferenceRevision: number
}

/** What is the same for as long as catalog and policies are. */
export interface Indexes {
  readonly policyRevision: number
  readonly policy: PolicyDocument
  readonly catalogRevision: number
  readonly snapshot: Toolset
  readonly policies: readonly PolicyIndex[]
  /** What policies say to everybody. */
  readonly fixed: readonly Mark[]
  readonly scopes: ScopeIndex
  readonly groups: GroupIndex
  readonly locks: GroupIndex
}

function indexSnapshot(
  world: World,
  snapshot: Toolset,
  parsed: readonly ParsedPolicy[],
): Omit<Indexes, 'policyRevision' | 'catalogRevision'> {
  const policies = parsed.map((policy, i) => indexPolicy(policy, i, snapshot))
  const groups = indexGroups(snapshot, world.groups)
  return {
    snapshot,
    policies,
    policy: policyDocumentOf(parsed, world.groups.selectors),
    fixed: policies.flatMap(fixedMarks),
    scopes: indexScopes(snapshot),
    groups,
    locks: indexLocks(groups, world.groups, snapshot),
  }
}

export function createEpoch(
  { snapshot, policies, policy, scopes, locks: lockIndex, fixed, policyRevision, catalogRevision }: Indexes,
  heldBack: readonly Mark[],
  world: Pick<World, 'groups' | 'unlocks' | 'halts' | 'preferences'>,
): Epoch {
  const rulings = new WeakMap<Caller, CallerRuling>()
  const everybody = rule(snapshot, [...fixed, ...heldBack])
  const passing = new Set(heldBack)
  const haltsOf = world.halts.marksOver(snapshot)
  const switchedOffBy = world.preferences.marksOver(snapshot)
  const share = createSharing()
  const known = (caller: Caller): CallerRuling => {
    const open = world.unlocks.openFor(caller)
    let found = rulings.get(caller)
    if (found?.open !== open) {
      const own = found?.own ?? [
        ...policies.flatMap((one) => callerMarks(one, caller)),
        ...scopeMarks(scopes, caller.scopes),
      ]
      const locks = lockMarks(lockIndex, world.groups, open, caller.session)
      const held = [...haltsOf(caller), ...switchedOffBy(caller)]
      const ruling = () => tellRequests(rule(snapshot, [...own, ...locks, ...held], everybody))
      found = share(open, [...own, ...held], locks, () => ({ open, own, ruling: ruling() }))
      rulings.set(caller, found)
    }
    return found
  }
  return {
    snapshot,
    policies,
    policyRevision,
    policy,
    catalogRevision,
    ruling: (caller) => known(caller).ruling,
    ceilingMarks: (caller) => [...everybody.marks.filter((mark) => !passing.has(mark)), ...known(caller).own],
  }
}

const MAX_SHARED = 1000

/** Makes one ruling for all callers for whom the same clauses hold: they see the same, and share it. */
function createSharing() {
  const numbers = new WeakMap<object, number>()
  const shared = createBoundedCache<string, CallerRuling>(MAX_SHARED)
  let next = 0
  const numberOf = (thing: object): number => {
    let number = numbers.get(thing)
    if (number === undefined) numbers.set(thing, (number = next++))
    return number
  }
  return (open: object, own: readonly Mark[], locks: readonly Mark[], make: () => CallerRuling): CallerRuling => {
    let key = `${numberOf(open)}`
    for (const mark of own) key += ` ${numberOf(mark)}`
    // Of a locked group there is one set of tools, and one thing to say of it.
    for (const { bits } of locks) key += ` lock ${numberOf(bits)}`
    let ruling = shared.get(key)
    if (!ruling) shared.set(key, (ruling = make()))
    return ruling
  }
}

interface CallerRuling {
  readonly open: ReadonlySet<string>
  /** What policy and scopes say to this caller. */
  readonly own: readonly Mark[]
  readonly ruling: Ruling
}
