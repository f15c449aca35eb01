import type { Caller } from '@toolgate/core'
import { type AccessRules, findByKey, readCookie } from '../access.ts'
import { invalid, readBody } from '../body.ts'
import { toName } from '../callers.ts'
import { parseQuery } from '../query.ts'
import { SESSION_TTL_MS } from '../sessions.ts'
import type { SessionBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/session`: who is logged in. */
export const sessionRoute: Route = ({ person, query }) => {
  parseQuery(query, {})
  return toBody(person)
}

/** `POST /api/login` with `{ key }`: opens a session. The cookie is out of reach of scripts and other sites. */
export async function login(request: Request, rules: AccessRules): Promise<Response> {
  const key = (await readBody(request, ['key'])).get('key')
  if (typeof key !== 'string') throw invalid('The field "key" must be a string.')
  const caller = findByKey(`Bearer ${key}`, rules.keyring)
  return Response.json(toBody(caller), {
    headers: { 'set-cookie': toCookie(request, rules.cookieName, rules.sessions.open(caller), SESSION_TTL_MS / 1000) },
  })
}

/** `POST /api/logout`: ends the session of the cookie, if there is one. */
export function logout(request: Request, rules: AccessRules): Response {
  const secret = readCookie(request.headers, rules.cookieName)
  if (secret !== undefined) rules.sessions.close(secret)
  return Response.json({}, { headers: { 'set-cookie': toCookie(request, rules.cookieName, '', 0) } })
}

function toBody(person: Caller): SessionBody {
  const { tenant, roles = [] } = person
  return { user: toName(person), ...(tenant === undefined ? {} : { tenant }), roles }
}

/** RFC 6265bis. `Secure` where the page came over TLS: on plain loopback a browser would drop the cookie. */
function toCookie(request: Request, name: string, value: string, maxAgeSeconds: number): string {
  const secure = request.headers.get('origin')?.startsWith('https:') === true ? '; Secure' : ''
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`
}
