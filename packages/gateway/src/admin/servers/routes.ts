import type { ApiDeps } from '../http/deps.ts'
import { ApiFault } from '../../model/faults.ts'
import { parseQuery, type Route } from '../http/request.ts'
import type { RestartedBody, ServersBody } from '../../model/rows.ts'
import { checkServer, maySeeLogs } from './logs.ts'
import { nameOperator } from '../reload/routes.ts'
import { serverFor } from '../tools/routes.ts'

/** `GET /api/servers` */
export function serversRoute({ servers, restart }: ApiDeps): Route {
  return ({ person, query }) => {
    parseQuery(query, {})
    return {
      servers: servers().map((row) => serverFor(person, row)),
      // Both take the same people: whom no tenant keeps from the others' calls.
      mayOperate: restart !== undefined && person.user !== undefined && maySeeLogs(person),
    } satisfies ServersBody
  }
}

/** `POST /api/servers/<name>/restart`: recorded before it begins. The calls that the server runs end. */
export function restartRoute({ servers, restart, recordChange }: ApiDeps): Route {
  return async ({ id: server, person, query }) => {
    parseQuery(query, {})
    const by = nameOperator(person, 'restart_forbidden', 'A restart of a server')
    checkServer(server, servers())
    if (!restart) throw new ApiFault('restart_forbidden', 'No server can be restarted here.')
    await recordChange?.('server_restarted', server, by)
    const replicas = await restart(server)
    return { server, ...(replicas && { replicas }) } satisfies RestartedBody
  }
}
