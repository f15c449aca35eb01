import type { Caller } from '@toolgate/core'
import type { ConnectionRow as Row } from '../../servers/connections/connections.ts'
import { connectUrl } from '../../servers/connections/connections.ts'
import { maySeeListsOf } from '../http/callers.ts'
import type { ApiDeps } from '../http/deps.ts'
import { ApiFault } from '../../model/faults.ts'
import { parseQuery, type Route, shortText } from '../http/request.ts'
import type { ConnectionRow, ConnectionsBody } from '../../model/rows.ts'

const WHOSE = { user: shortText, tenant: shortText }

/** `GET /api/connections?user=&tenant=`: the servers that want a connection, with the person's own, or for approvers a user's. */
export function connectionsRoute({ connections }: ApiDeps): Route {
  return ({ person, query }) => {
    const whose = whoseOf(person, parseQuery(query, WHOSE))
    return { connections: (connections?.rowsOf(whose) ?? []).map(toRow) } satisfies ConnectionsBody
  }
}

/** `DELETE /api/connections/<server>?user=&tenant=`: ends a connection, and has its tokens withdrawn. */
export function disconnectRoute({ connections }: ApiDeps): Route {
  return async ({ id, person, query }) => {
    const whose = whoseOf(person, parseQuery(query, WHOSE))
    checkWanted(connections?.rowsOf(whose), id)
    await connections?.disconnect(id, whose, whose === person ? undefined : person.user)
    return { server: id, page: connectUrl(id, undefined) } satisfies ConnectionRow
  }
}

/** Returns the user whose connections are asked for: the person, if none is named. @throws {ApiFault} `connection_forbidden` */
function whoseOf(person: Caller, { user, tenant }: { readonly user?: string; readonly tenant?: string }): Caller {
  if (user === undefined && tenant === undefined) return person
  const whose = { ...(user !== undefined && { user }), ...(tenant !== undefined && { tenant }) }
  if (user === person.user && tenant === person.tenant) return person
  if (maySeeListsOf(person, whose)) return whose
  throw new ApiFault('connection_forbidden', 'Connections of others take the role "approver", within the tenant.')
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
