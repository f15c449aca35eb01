import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { GroupRow } from '../../model/rows.ts'
import { serverGroupName } from '../../servers/catalog/groups.ts'
import type { Family } from '../../telemetry/exposition.ts'
import { FleetGroups } from './fleet-groups.ts'
import { createGroupWatch, type GroupWatch } from './group-watch.ts'
import { createGroupRows } from './rows.ts'
import { recordStateChanges } from './state-changes.ts'

/** The groups of a gateway, for other rooms. */
export interface GroupsRoom {
  /** Returns the rows of all groups, or of the named ones. */
  rows(names?: readonly string[]): readonly GroupRow[]
  /** Reads the published groups of other replicas. */
  refresh(): Promise<void> | void
  readonly watch: GroupWatch
  /** The groups of other replicas. Absent if this gateway runs alone. */
  readonly others: FleetGroups | undefined
}

/** Watches groups and servers, and records their changes. */
export const groups: Room<GroupsRoom> = {
  name: 'groups',
  open(heart) {
    const { revisions, clock, onFault, gate, catalog, servers, stores, redact } = heart
    const { availability } = catalog
    const names = revisions.derive((rules) => [
      ...rules.groups.map(({ name }) => name),
      ...rules.servers.map(({ name }) => serverGroupName(name)),
    ])
    const watch = createGroupWatch({ names, availability, clock, onFault })
    const at = () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision })
    const recording = { audit: stores.audit, clock, redact, revisions: at, onFault }
    recordStateChanges({ watch, serverOf: (group) => servers.fleet.serverOfGroup(group), ...recording })
    const own = createGroupRows({ groups: () => revisions.current.groups, gate, availability, redact })
    const others = openFleetGroups(heart, own, watch)
    const rows: GroupsRoom['rows'] = (of) => others?.withOthers(own(of)) ?? own(of)
    const figures = () =>
      rows().map(({ name, available }) => ({ name, available, changes: watch.counts.get(name) ?? 0 }))
    return {
      service: { rows, refresh: () => others?.refresh(), watch, others },
      metrics: [() => groupFamilies(figures())],
      renew() {
        watch.renew()
        others?.tell()
      },
      async close() {
        await others?.close()
        watch.close()
      },
    }
  },
}

function openFleetGroups(
  { replica, clock, onFault }: Heart,
  rows: () => readonly GroupRow[],
  watch: GroupWatch,
): FleetGroups | undefined {
  if (!replica) return undefined
  const { membership, stores } = replica
  const { self } = membership
  const replicas = () => membership.list()
  const others = new FleetGroups({ self, state: stores.state, replicas, rows, watch, clock, onFault })
  others.tell()
  return others
}

/** Returns the metrics of groups. Their names come from the configuration, so the number of series is bounded. */
function groupFamilies(
  all: readonly { readonly name: string; readonly available: boolean; readonly changes: number }[],
): readonly Family[] {
  return [
    {
      name: 'toolgate_group_available',
      type: 'gauge',
      help: 'Whether a group is available: 1, or 0.',
      samples: all.map(({ name: group, available }) => ({ labels: { group }, value: available ? 1 : 0 })),
    },
    {
      name: 'toolgate_group_changes_total',
      type: 'counter',
      help: 'How often a group became available or unavailable, once a second at most.',
      samples: all.map(({ name: group, changes }) => ({ labels: { group }, value: changes })),
    },
  ]
}
