import type { Answer } from '../../heart/route.ts'
import type { Caller } from '@toolgate/core'
import type { UserConnectionRow } from '../../servers/connections/connections.ts'
import { CONNECT_PATH, connectUrl } from '../../servers/connections/connections.ts'
import { maySeeListsOf } from '../http/callers.ts'
import type { Room } from '../../heart/room.ts'
import { room as login } from '../login/routes.ts'
import { createConnectPage, type PageConnections } from './connect-page.ts'
import { ApiFault } from '../../model/faults.ts'
import { parseQuery, shortText } from '../http/request.ts'
import type { ConnectionRow, ConnectionsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'connections',
  needs: [login],
  open({ servers: { connections }, door: { logins }, onFault }, rooms) {
    const people = rooms.ask(login)
    const page = people && createConnectPage({ ...people, connections, logins, onFault })
    return {
      routes: [
        { method: 'GET', path: '/api/connections', by: 'person', answer: connectionsRoute(connections) },
        { method: 'DELETE', path: '/api/connections/:id', by: 'person', answer: disconnectRoute(connections) },
      ],
      pages: page ? [{ under: CONNECT_PATH, ...page }] : [],
    }
  },
}

const WHOSE = { user: shortText, tenant: shortText }

/**
 * `GET /api/connections?user=&tenant=`: the servers that need a connection, with the person's own connections or, for
 * approvers, those of a user.
 */
function connectionsRoute(connections: PageConnections): Answer {
  return ({ person, query }) => {
    const whose = whoseOf(person, parseQuery(query, WHOSE))
    return { connections: connections.rowsOf(whose).map(toRow) } satisfies ConnectionsBody
  }
}

/** `DELETE /api/connections/<server>?user=&tenant=`: ends a connection, and revokes its tokens. */
function disconnectRoute(connections: PageConnections): Answer {
  return async ({ id, person, query }) => {
    const whose = whoseOf(person, parseQuery(query, WHOSE))
    checkWanted(connections.rowsOf(whose), id)
    await connections.disconnect(id, whose, whose === person ? undefined : person.user)
    return { server: id, page: connectUrl(id, undefined) } satisfies ConnectionRow
  }
}

/** Returns the user whose connections are requested. Default: the person. @throws {ApiFault} `connection_forbidden` */
function whoseOf(person: Caller, { user, tenant }: { readonly user?: string; readonly tenant?: string }): Caller {
  if (user === undefined && tenant === undefined) return person
  const whose = { ...(user !== undefined && { user }), ...(tenant !== undefined && { tenant }) }
  if (user === person.user && tenant === person.tenant) return person
  if (maySeeListsOf(person, whose)) return whose
  throw new ApiFault('connection_forbidden', 'Connections of others take the role "approver", within the tenant.')
}

function checkWanted(rows: readonly UserConnectionRow[], server: string): void {
  if (!rows.some((row) => row.server === server))
    throw new ApiFault('server_unknown', 'No server of this name wants a connection.')
}

/** Returns the row of a connection, which contains nothing secret. */
function toRow({ server, connection }: UserConnectionRow): ConnectionRow {
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
