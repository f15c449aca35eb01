import type { Room } from '../../heart/room.ts'
import { UPSTREAM_STATUSES } from '../../model/upstream.ts'
import type { ServerRow } from '../../model/rows.ts'
import { INSTANCE_STATES } from '../../servers/instances/instances.ts'
import type { Family } from '../../telemetry/exposition.ts'

/** The metrics of servers. */
export const servers: Room = {
  name: 'servers',
  open: ({ servers: { fleet } }) => ({ metrics: [() => serverFamilies(fleet.rows())] }),
}

/** Returns the metrics of servers. Their names come from the configuration, so the number of series is bounded. */
export function serverFamilies(rows: readonly ServerRow[]): readonly Family[] {
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
