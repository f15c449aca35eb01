import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { UPSTREAM_STATUSES } from '../../model/upstream.ts'
import type { ServerRow } from '../../model/rows.ts'
import { createProgramReader } from '../../servers/catalog/program.ts'
import { type ServerIdentities, watchIdentities } from '../../servers/catalog/server-identity.ts'
import { INSTANCE_STATES } from '../../servers/instances/instances.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** The figures of servers, and which program each of them runs, which is watched unless pins are off. */
export const servers: Room = {
  name: 'servers',
  open(heart) {
    const { fleet } = heart.servers
    const identities = openIdentities(heart)
    return {
      metrics: [() => serverFamilies(fleet.rows())],
      renew: () => identities?.renew(),
      async close() {
        await identities?.settled()
        identities?.close()
      },
    }
  },
}

function openIdentities(heart: Heart): ServerIdentities | undefined {
  const { config, stores, clock, redact, gate, onFault } = heart
  const { fleet } = heart.servers
  const isOff = (typeof config.pins === 'object' ? config.pins.changed : config.pins) === 'off'
  if (isOff) return undefined
  const identities = watchIdentities({
    servers: () => fleet.watched,
    state: stores.state,
    programOf: createProgramReader(),
    audit: stores.audit,
    clock,
    redact,
    revisions: () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision }),
    onFault,
  })
  fleet.showChanges((name) => identities.changeOf(name))
  return identities
}

/** Returns the metrics of servers. Their names come from the configuration, so the number of series is bounded. */
function serverFamilies(rows: readonly ServerRow[]): readonly Family[] {
  return [
    {
      name: 'toolgate_server_up',
      type: 'gauge',
      help: 'Whether a server is ready: 1, or 0.',
      samples: rows.map(({ name: server, status }) => ({ labels: { server }, value: status === 'ready' ? 1 : 0 })),
    },
    {
      name: 'toolgate_servers',
      type: 'gauge',
      help: 'Servers by status.',
      samples: UPSTREAM_STATUSES.map((status) => ({
        labels: { status },
        value: rows.filter((row) => row.status === status).length,
      })),
    },
    {
      name: 'toolgate_server_restarts_total',
      type: 'counter',
      help: 'How often a server was started again.',
      samples: rows.map(({ name: server, restarts }) => ({ labels: { server }, value: restarts })),
    },
    {
      name: 'toolgate_upstream_instances',
      type: 'gauge',
      help: 'Instances of users, by server and state.',
      samples: rows.flatMap(({ name: server, instances }) =>
        INSTANCE_STATES.flatMap((state) => (instances ? [{ labels: { server, state }, value: instances[state] }] : [])),
      ),
    },
  ]
}
