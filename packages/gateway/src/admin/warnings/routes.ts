import type { OpenedRooms, Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { WarningsBody } from '../../model/rows.ts'
import { parseQuery } from '../http/request.ts'

export const room: Room = {
  name: 'warnings',
  open: (_heart, rooms) => ({
    routes: [{ method: 'GET', path: '/api/warnings', by: 'person', answer: warningsRoute(rooms) }],
  }),
}

/**
 * `GET /api/warnings`: likely mistakes in the current configuration. People with a tenant get none, because warnings
 * may name other tenants.
 */
function warningsRoute(rooms: Pick<OpenedRooms, 'warnings'>): Answer {
  return ({ query, person }) => {
    parseQuery(query, {})
    return { warnings: person.tenant === undefined ? rooms.warnings() : [] } satisfies WarningsBody
  }
}
