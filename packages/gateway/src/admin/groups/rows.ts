import type { Gate } from '@toolgate/core'
import type { Apps, AvailabilitySource, GroupState } from '@toolgate/core/groups'
import type { Redactor } from '@toolgate/values/redact'
import type { Toolset } from '@toolgate/core/toolset'
import type { AppRow, GroupBadge, GroupRow, NeedRow } from '../../model/rows.ts'
import type { GroupConfig } from '../../config/config.ts'
import { redactGroup, redactNeed } from '../../config/redaction.ts'

interface GroupRowDeps {
  groups(): readonly GroupConfig[]
  readonly gate: Pick<Gate, 'catalog' | 'membersOf'>
  readonly availability: Pick<AvailabilitySource, 'get'>
  readonly redact: Redactor
}

/** Returns a function that returns the current rows of all groups, or of the named ones. */
export function createGroupRows(deps: GroupRowDeps): (names?: readonly string[]) => readonly GroupRow[] {
  const membersOf = createMembers(deps.gate)
  return (names) =>
    deps
      .groups()
      .filter(({ name }) => names === undefined || names.includes(name))
      .map((group) => {
        const { name } = group
        return redactGroup(toGroupRow(group, deps.availability.get(name), membersOf(name)), deps.redact)
      })
}

/** Caches the members of groups by catalog, as matching every selector with every tool takes long. */
function createMembers({ catalog, membersOf }: GroupRowDeps['gate']): (name: string) => readonly string[] {
  const known = new WeakMap<Toolset, Map<string, readonly string[]>>()
  return (name) => {
    const snapshot = catalog.snapshot()
    let members = known.get(snapshot)
    if (!members) known.set(snapshot, (members = new Map()))
    let own = members.get(name)
    if (!own) members.set(name, (own = membersOf(name)))
    return own
  }
}

function toGroupRow(group: GroupConfig, state: GroupState | undefined, tools: readonly string[]): GroupRow {
  const { name, title, visibility, hint, dependsOn } = group
  const available = state?.available ?? visibility === 'always'
  const suggestion = state?.suggestion ?? group.suggestion
  return {
    name,
    ...(title === undefined ? {} : { title }),
    visibility,
    available,
    ...(state?.reason === undefined ? {} : { reason: state.reason }),
    ...(suggestion === undefined ? {} : { suggestion }),
    ...(state?.since === undefined ? {} : { since: state.since }),
    tools,
    badge: badgeOf(group, state),
    ...(hint === undefined ? {} : { hint }),
    ...(dependsOn.length === 0 ? {} : { dependsOn }),
  }
}

/** Returns the badge. `unavailable` comes before `locked`, as unlocking an unavailable group does not help. */
function badgeOf({ visibility, dependsOn, unlock }: GroupConfig, state: GroupState | undefined): GroupBadge {
  const isConditional = visibility === 'conditional' || dependsOn.length > 0
  if (isConditional && (state === undefined || state.unknown === true)) return 'unknown'
  if (isConditional && state?.available === false) return 'unavailable'
  if (unlock !== undefined) return 'locked'
  return isConditional ? 'available' : 'always'
}

/** Returns the rows of the apps. `own`: the gateway's meta-tools, which are in every app and are left out. */
export function toAppRows(apps: Apps, own: ReadonlySet<string> = new Set()): readonly AppRow[] {
  return apps.list.map(({ name, title, instructions, groups }) => ({
    name,
    ...(title === undefined ? {} : { title }),
    path: `/mcp/${name}`,
    ...(instructions === undefined ? {} : { instructions }),
    groups: groups.filter(({ visibility }) => visibility !== 'hidden').map((group) => group.name),
    tools: apps.toolsOf(name).filter((id) => !own.has(id)),
    available: apps.availableOf(name).filter((id) => !own.has(id)).length,
  }))
}

/** Returns a function that returns the dependencies of an app. Implicit groups of servers are left out. */
export function createNeedRows(
  gate: Pick<Gate, 'needsOf'>,
  groups: () => readonly Pick<GroupConfig, 'name'>[],
  redact: Redactor,
): (app?: string) => readonly NeedRow[] {
  return (app) => {
    const configured = new Set(groups().map(({ name }) => name))
    return gate
      .needsOf(app)
      .map((need) => redactNeed({ ...need, groups: need.groups.filter((name) => configured.has(name)) }, redact))
  }
}
