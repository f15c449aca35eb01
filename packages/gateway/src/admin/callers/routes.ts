import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { CallersBody } from '../../model/rows.ts'
import { createNamedCallers, type NamedCallers } from '../http/callers.ts'
import { mayCallAs } from '../http/own-agent.ts'
import { parseQuery } from '../http/request.ts'

export const room: Room = {
  name: 'callers',
  open(heart) {
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    return { routes: [{ method: 'GET', path: '/api/callers', by: 'person', answer: callersRoute(heart, callers) }] }
  },
}

/** `GET /api/callers`: the callers that `as` may name, each with the number of tools that they see. */
function callersRoute(heart: Pick<Heart, 'gate' | 'revisions' | 'door'>, callers: NamedCallers): Answer {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const rows = [...callers(person).values()].map(async ({ name, for: kind, caller }) => ({
      user: name,
      ...(caller.tenant === undefined ? {} : { tenant: caller.tenant }),
      roles: caller.roles ?? [],
      for: kind,
      ...(mayCallAs(heart, { person, caller }) ? { mayCall: true as const } : {}),
      visible: (await heart.gate.view(caller)).size,
    }))
    return { callers: await Promise.all(rows) } satisfies CallersBody
  }
}
