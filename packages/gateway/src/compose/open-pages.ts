import type { Heart } from '../heart/heart.ts'
import type { Rooms } from '../heart/rooms.ts'
import type { RequestSource } from '../util/client-address.ts'
import { room as login } from '../admin/login/routes.ts'
import { type AccessRules, createSessions } from '../admin/http/access.ts'
import { type HttpApi, createApi } from '../admin/http/api.ts'
import { createPages } from '../admin/http/pages.ts'

/** The HTTP API and the pages for people. */
export interface OpenedPages extends HttpApi {
  answer: ReturnType<typeof createPages>
}

/** Opens the rooms of people, with their routes and pages. */
export async function openPages(
  rooms: Pick<Rooms, 'ask' | 'openForPeople'>,
  heart: Heart,
  isForwarded: (from: RequestSource) => boolean,
): Promise<OpenedPages> {
  const opened = await rooms.openForPeople()
  const { redact, onFault, clock, door } = heart
  const access = rooms.ask(login)?.access ?? keysOnly(heart)
  const routes = opened.flatMap((room) => room.routes ?? [])
  const api = createApi(routes, { access, clock, redact, onFault, logins: door.logins, isForwarded })
  const pages = opened.flatMap((room) => room.pages ?? [])
  return { ...api, answer: createPages(api, pages) }
}

/** Access without logins: people send a key with each request. */
function keysOnly({ door, clock }: Heart): AccessRules {
  return { ...door, sessions: createSessions({ clock }), cookieName: 'toolgate_session' }
}
