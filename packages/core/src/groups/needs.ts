import { type ParsedApp, unknownApp } from './app.ts'
import { stateOf } from '../decide/layers/groups.ts'
import {
  type AvailabilitySource,
  type GroupState,
  type ProbeKind,
  PROBE_KINDS,
  type ProbeState,
} from '../ports/ports.ts'
import type { Catalog } from '../tools/catalog.ts'
import { closure, type Group, type Groups } from '../tools/groups.ts'
import { matchesSelector, type Selector, selectorsOverlap } from '../tools/selector.ts'
import type { Toolset } from '../tools/toolset.ts'

/** `group`: the host reports the availability of the group, but not its needs. */
type NeedKind = ProbeKind | 'group'

/** A thing that must work so that tools are available. */
export interface Need {
  readonly kind: NeedKind
  /** As a noun: `127.0.0.1:4444`, `the environment variable GITHUB_TOKEN`, `the server files`. */
  readonly what: string
  /** The groups that need it, directly or by their dependencies, in the order of definition. */
  readonly groups: readonly string[]
  /** `unknown`: not checked yet. */
  readonly state: 'available' | 'unavailable' | 'unknown'
  /** Why it is unavailable, in a clause without a full stop. */
  readonly reason?: string
  /** What to do about it, as a sentence. Absent while it is available. */
  readonly suggestion?: string
  /** Wall-clock milliseconds of the latest change of `state`. */
  readonly since?: number
}

interface NeedsRules {
  readonly definitions: ReadonlyMap<string, Group>
  readonly groups: Groups
  readonly apps: ReadonlyMap<string, ParsedApp>
}

interface NeedsDeps {
  readonly rules: { readonly now: NeedsRules }
  readonly catalog: Pick<Catalog, 'snapshot'>
  readonly availability: AvailabilitySource
  /** The ids of the tools of an app. */
  readonly toolsOf: (app: string) => readonly string[]
}

const KINDS: readonly NeedKind[] = [...PROBE_KINDS, 'group']

/** Returns a function that lists the needs of an app, or of all groups. */
export function createNeeds(deps: NeedsDeps): (app?: string) => readonly Need[] {
  const { rules, catalog, availability } = deps
  const scopes = new WeakMap<Toolset, Map<string, ReadonlySet<string>>>()

  /** Cached for each snapshot, because comparing every selector with every tool takes time. */
  const scopeOf = (app: ParsedApp): ReadonlySet<string> => {
    const snapshot = catalog.snapshot()
    let known = scopes.get(snapshot)
    if (!known) scopes.set(snapshot, (known = new Map()))
    let scope = known.get(app.name)
    if (!scope) known.set(app.name, (scope = groupsOfApp(app, snapshot, deps)))
    return scope
  }

  return (name) => {
    const { definitions, groups, apps } = rules.now
    if (name === undefined) return listNeeds([...definitions.keys()], groups, definitions, availability)
    const app = apps.get(name)
    if (!app) throw unknownApp(name, apps)
    const scope = scopeOf(app)
    const names = [...definitions.keys()].filter((group) => scope.has(group))
    return listNeeds(names, app.groups, definitions, availability)
  }
}

/**
 * Returns the groups that decide whether an app's tools are available: those that it imports, those that its tools are
 * members of, and all that these depend on.
 */
function groupsOfApp(app: ParsedApp, snapshot: Toolset, { rules, toolsOf }: NeedsDeps): Set<string> {
  const { definitions, groups } = rules.now
  const imported = new Set(app.imports.filter(({ visibility }) => visibility !== 'hidden').map(({ group }) => group))
  const hidden = app.imports.filter(({ visibility }) => visibility === 'hidden')
  const offered = offeredSelectors(app)
  const tools = toolsOf(app.name).flatMap((id) => snapshot.get(id) ?? [])
  const isMember = (selectors: readonly Selector[]): boolean =>
    tools.some((tool) => selectors.some((selector) => matchesSelector(selector, tool, 'possible'))) ||
    // The tools of a server that has not started are not in the catalog, but the app needs that server.
    selectors.some((selector) => offered.some((own) => selectorsOverlap(own, selector)))
  const direct = [...groups.conditional.keys()].filter(
    (name) => !hidden.some(({ group }) => group === name) && isMember(groups.selectors.get(name) ?? []),
  )
  return new Set([...imported, ...direct].flatMap((name) => closure(name, definitions)))
}

/** The selectors of the tools of an app, without those that it hides. */
function offeredSelectors({ imports, own }: ParsedApp): readonly Selector[] {
  const membersWhere = (isHidden: boolean) =>
    imports.flatMap(({ members, visibility }) => ((visibility === 'hidden') === isHidden ? members : []))
  const hidden = membersWhere(true)
  return [...own, ...membersWhere(false)].filter(
    (selector) => selector.kind !== 'id' || !hidden.some((other) => selectorsOverlap(other, selector)),
  )
}

interface FoundNeed {
  readonly probe: AskedProbe
  /** A group that names the probe itself. */
  readonly owner: string
  readonly groups: Set<string>
  /** The suggestion of the first group that names the probe and has one. */
  named: string | undefined
  /** The suggestion of the first group that depends on one of these groups. */
  above: string | undefined
}

interface AskedProbe extends GroupState {
  readonly kind: NeedKind
  readonly key: string
  readonly what?: string
}

function listNeeds(
  names: readonly string[],
  { conditional }: Groups,
  definitions: ReadonlyMap<string, Group>,
  source: AvailabilitySource,
): readonly Need[] {
  const found = new Map<string, FoundNeed>()
  for (const name of names) {
    const suggestion = definitions.get(name)?.suggestion
    for (const below of conditional.get(name)?.requires ?? []) {
      for (const probe of probesOf(below, source)) {
        const need = found.get(probe.key) ?? {
          probe,
          owner: below,
          groups: new Set(),
          named: undefined,
          above: undefined,
        }
        found.set(probe.key, need)
        need.groups.add(name)
        if (below === name) need.named ??= suggestion
        else need.above ??= suggestion
      }
    }
  }
  return [...found.values()].map(toNeed).toSorted(byKindAndName)
}

/** Without probes, the group itself is the need. */
function probesOf(group: string, source: AvailabilitySource): readonly AskedProbe[] {
  const probes: readonly ProbeState[] | undefined = source.probesOf?.(group)
  return (
    probes ?? [{ ...stateOf(source, group), kind: 'group', key: `\u0000group ${group}`, what: `the group ${group}` }]
  )
}

function toNeed({ probe, owner, groups, named, above }: FoundNeed): Need {
  const { kind, available, unknown, reason, since } = probe
  const suggestion = named ?? probe.suggestion ?? above
  return {
    kind,
    what: probe.what ?? `a probe of the group ${owner}`,
    groups: [...groups],
    state: available ? 'available' : unknown ? 'unknown' : 'unavailable',
    ...(available || reason === undefined ? {} : { reason }),
    ...(available || suggestion === undefined ? {} : { suggestion }),
    ...(since === undefined ? {} : { since }),
  }
}

/** The order does not depend on the state, so that lists stay stable. */
function byKindAndName(a: Need, b: Need): number {
  const byKind = KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)
  if (byKind !== 0) return byKind
  return a.what < b.what ? -1 : a.what > b.what ? 1 : 0
}
