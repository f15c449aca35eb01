import type { Caller } from '@toolgate/core'
import { checkOrigin, type Keyring, type OriginRules, toChallenge } from '../auth/index.ts'
import { ApiFault } from './faults.ts'
import type { Sessions } from './sessions.ts'

export interface AccessRules {
  readonly keyring: Keyring
  readonly origins: OriginRules
  readonly sessions: Sessions
  readonly cookieName: string
}

/** @throws {ApiFault} `host_forbidden`, `origin_forbidden` */
export function checkHeaders({ headers }: Request, rules: OriginRules): void {
  const problem = checkOrigin({ host: header(headers, 'host'), origin: header(headers, 'origin') }, rules)
  if (problem) throw new ApiFault(problem.header === 'Host' ? 'host_forbidden' : 'origin_forbidden', problem.message)
}

/**
 * Gives the person who asks: by a console key, or by the cookie of a login.
 *
 * A change that only a cookie vouches for must come from a page of ours, so that no other page can make it.
 *
 * @throws {ApiFault} `unauthenticated`, `key_not_for_console`, `origin_forbidden`
 */
export function findPerson(request: Request, rules: AccessRules): Caller {
  const authorization = header(request.headers, 'authorization')
  if (authorization !== undefined) return findByKey(authorization, rules.keyring)
  const caller = rules.sessions.find(readCookie(request.headers, rules.cookieName) ?? '')
  if (!caller) throw unauthenticated('missing', 'This needs a console key, or a login with one.')
  const changes = request.method !== 'GET' && request.method !== 'HEAD'
  if (changes && !request.headers.has('origin'))
    throw new ApiFault(
      'origin_forbidden',
      'A change by cookie must come from a page of this gateway: Origin is absent.',
    )
  return caller
}

/** @throws {ApiFault} `unauthenticated`, `key_not_for_console` */
export function findByKey(authorization: string, keyring: Keyring): Caller {
  const answer = keyring.authenticate(authorization)
  if (!answer.ok) throw unauthenticated(answer.reason, 'The key is not known.')
  if (answer.for !== 'console')
    throw new ApiFault(
      'key_not_for_console',
      "This is an agent's key, for /mcp. The API and the console need a console key.",
    )
  return answer.caller
}

/** Gives the value of one cookie (RFC 6265 §4.2). */
export function readCookie(headers: Headers, name: string): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

function unauthenticated(problem: Parameters<typeof toChallenge>[0], message: string): ApiFault {
  return new ApiFault('unauthenticated', message, { 'www-authenticate': toChallenge(problem) })
}

function header(headers: Headers, name: string): string | undefined {
  return headers.get(name) ?? undefined
}
