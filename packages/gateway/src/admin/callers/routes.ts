import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { CallersBody } from '../../model/rows.ts'
import { createNamedCallers, type NamedCaller, type NamedCallers } from '../http/callers.ts'
import { mayCallAs } from '../http/own-agent.ts'
import { oneOf, parseQuery, shortText, wholeNumber } from '../http/request.ts'

export const room: Room = {
  name: 'callers',
  open(heart) {
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    return { routes: [{ method: 'GET', path: '/api/callers', by: 'person', answer: callersRoute(heart, callers) }] }
  },
}

const MAX_LIMIT = 2000

/**
 * `GET /api/callers?as=&text=&own=&limit=`: the callers that `as` may name, each with the number of tools that they see.
 * That number takes a view of each caller, so a page that shows few asks for few.
 */
function callersRoute(heart: Pick<Heart, 'gate' | 'revisions' | 'door'>, callers: NamedCallers): Answer {
  return async ({ query, person }) => {
    const {
      as,
      text,
      own,
      limit = Infinity,
    } = parseQuery(query, {
      as: shortText,
      text: shortText,
      own: oneOf(['true', 'false']),
      limit: wholeNumber(1, MAX_LIMIT),
    })
    const found = [...callers(person).values()].filter(
      (one) =>
        (as === undefined || one.name === as) &&
        (text === undefined || hasText(one, text.toLowerCase())) &&
        (own !== 'true' || mayCallAs(heart, { person, caller: one.caller })),
    )
    const rows = found.slice(0, limit).map(async ({ name, for: kind, caller }) => ({
      user: name,
      ...(caller.tenant === undefined ? {} : { tenant: caller.tenant }),
      roles: caller.roles ?? [],
      for: kind,
      ...(mayCallAs(heart, { person, caller }) ? { mayCall: true as const } : {}),
      visible: (await heart.gate.view(caller)).size,
    }))
    return { callers: await Promise.all(rows), total: found.length } satisfies CallersBody
  }
}

function hasText({ name, caller: { tenant = '', roles = [] } }: NamedCaller, text: string): boolean {
  return [name, tenant, ...roles].some((one) => one.toLowerCase().includes(text))
}
