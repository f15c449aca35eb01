import type { ConnectionRow as Row } from '../../connections/connections.ts'
import { connectUrl } from '../../connections/connections.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { parseQuery, type Route } from '../request.ts'
import type { ConnectionRow, ConnectionsBody } from '../wire.ts'

/** `GET /api/connections`: the servers that want a connection, with the person's own. */
export function connectionsRoute({ connections }: ApiDeps): Route {
  return ({ person, query }) => {
    parseQuery(query, {})
    return { connections: (connections?.rowsOf(person) ?? []).map(toRow) } satisfies ConnectionsBody
  }
}

/** `DELETE /api/connections/<server>`: ends the person's own connection, and has its tokens withdrawn. */
export function disconnectRoute({ connections }: ApiDeps): Route {
  return async ({ id, person, query }) => {
    parseQuery(query, {})
    checkWanted(connections?.rowsOf(person), id)
    await connections?.disconnect(id, person)
    return { server: id, page: connectUrl(id, undefined) } satisfies ConnectionRow
  }
}

function checkWanted(rows: readonly Row[] | undefined, server: string): void {
  if (!rows?.some((row) => row.server === server))
    throw new ApiFault('server_unknown', 'No server of this name wants a connection.')
}

/** Nothing that is sealed is in a row. */
function toRow({ server, connection }: Row): ConnectionRow {
  const page = connectUrl(server, undefined)
  if (!connection) return { server, page }
  const { account, scopes, issuer, since } = connection
  return {
    server,
    page,
    connected: {
      since,
      issuer,
      ...(account === undefined ? {} : { account }),
      ...(scopes === undefined ? {} : { scopes }),
    },
  }
}
