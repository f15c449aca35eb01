import type { Caller } from '@toolgate/core'
import { checkOrigin, type OriginRules } from '../auth/origin.ts'
import { type Keyring, toChallenge, toKeyId } from '../auth/keyring.ts'
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

/** Somebody who may listen, for as long as what vouches for him does. */
export interface Admitted {
  readonly person: Caller
  /** Whether it still does. */
  holds(): boolean
  /** Hears of its end, where that is not a matter of time. Gives the way to stop hearing. */
  onEnd(listener: () => void): () => void
}

/**
 * Gives the person who asks for a socket, under the rules of a change: what a page of another site opens comes with
 * our cookie too, and no preflight comes before it.
 *
 * @throws {ApiFault} `host_forbidden`, `origin_forbidden`, `unauthenticated`, `key_not_for_console`
 */
export function admitToSocket(request: Request, rules: AccessRules): Admitted {
  checkHeaders(request, rules.origins)
  const person = findPerson(request, rules)
  if (request.headers.has('authorization')) return { person, holds: () => true, onEnd: () => () => {} }
  if (!request.headers.has('origin'))
    throw new ApiFault('origin_forbidden', 'A socket by cookie must be opened by a page of this gateway.')
  const secret = readCookie(request.headers, rules.cookieName) as string
  return {
    person,
    holds: () => rules.sessions.find(secret) !== undefined,
    onEnd: (listener) => rules.sessions.onEnd(secret, listener),
  }
}

/** @throws {ApiFault} `unauthenticated`, `key_not_for_console` */
export function findByKey(authorization: string, keyring: Keyring): Caller {
  const answer = keyring.authenticate(authorization)
  if (!answer.ok) throw unauthenticated(answer.reason, 'The key is not known.', toKeyId(authorization))
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

function unauthenticated(problem: Parameters<typeof toChallenge>[0], message: string, keyId?: string): ApiFault {
  return new ApiFault('unauthenticated', message, { 'www-authenticate': toChallenge(problem) }, keyId)
}

function header(headers: Headers, name: string): string | undefined {
  return headers.get(name) ?? undefined
}
