import type { Answer } from '../../heart/route.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { maySeeLogs, nameOperator } from '../http/may.ts'
import { recordChange } from '../http/record-change.ts'
import { serverFor } from '../http/server-for.ts'
import { parseQuery } from '../http/request.ts'
import type { RestartedBody, ServersBody } from '../../model/rows.ts'
import { checkServer, logsRoute } from './logs.ts'

export const room: Room = {
  name: 'servers',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/servers', by: 'person', answer: serversRoute(heart) },
      { method: 'POST', path: '/api/servers/:id/restart', by: 'person', answer: restartRoute(heart) },
      { method: 'GET', path: '/api/logs', by: 'person', answer: logsRoute(heart) },
    ],
  }),
}

/** `GET /api/servers` */
function serversRoute({ servers: { fleet } }: Pick<Heart, 'servers'>): Answer {
  return ({ person, query }) => {
    parseQuery(query, {})
    return {
      servers: fleet.rows().map((row) => serverFor(person, row)),
      // A restart needs the same rights as the logs, as both may concern users of all tenants.
      mayOperate: person.user !== undefined && maySeeLogs(person),
    } satisfies ServersBody
  }
}

/** `POST /api/servers/<name>/restart`: the restart is recorded before it begins. Running calls of the server end. */
function restartRoute(heart: Pick<Heart, 'servers' | 'replica' | 'gate' | 'stores' | 'clock'>): Answer {
  const { replica } = heart
  const { fleet } = heart.servers
  return async ({ id: server, person, query }) => {
    parseQuery(query, {})
    const by = nameOperator(person, 'restart_forbidden', 'A restart of a server')
    checkServer(server, fleet.rows())
    await recordChange(heart, 'server_restarted', { detail: server, by })
    if (!replica) await fleet.restart(server)
    const replicas = await replica?.restarts.ask(server)
    return { server, ...(replicas && { replicas }) } satisfies RestartedBody
  }
}
