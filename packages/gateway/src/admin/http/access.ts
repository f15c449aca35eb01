import type { Answer } from '../../heart/route.ts'
import { hash, randomBytes } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { createEmitter, type Emitter } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import { toName } from './callers.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, queryOf, readBody } from './request.ts'
import type { SessionBody } from '../../model/rows.ts'
import { type Authenticator, type Credential, isRefused, type RefusalReason, toKeyId } from '../../auth/credential.ts'
import { checkOrigin, type OriginRules } from '../../auth/origin.ts'
import type { EndedCallers } from '../../auth/keyring.ts'
import { type IssuedTo, isAbout } from '../../auth/issued-to.ts'

export interface AccessRules {
  readonly authenticator: Authenticator
  readonly origins: OriginRules
  readonly sessions: LoginSessions
  /** Calls the listener after credentials have ended or changed. */
  readonly onEnded?: ((listener: (callers: EndedCallers) => void) => () => void) | undefined
  readonly cookieName: string
  /** Whether callers belong to several tenants. Default: they do not. */
  readonly hasTenants?: () => boolean
}

/** @throws {ApiFault} `host_forbidden`, `origin_forbidden` */
export function checkHeaders({ headers }: Request, rules: OriginRules): void {
  const problem = checkOrigin({ host: header(headers, 'host'), origin: header(headers, 'origin') }, rules)
  if (problem) throw new ApiFault(problem.header === 'Host' ? 'host_forbidden' : 'origin_forbidden', problem.message)
}

/** A person, and when they logged in, in wall-clock milliseconds. */
export interface Login {
  readonly person: Caller
  readonly loginAt: number
  /** The id of the credential, for a login by key. */
  readonly credential?: string | undefined
  /** What people call the person, for pages only. */
  readonly label?: string | undefined
}

/**
 * Returns the person of a request, found by a console key or a login cookie. A request with a key counts as a login.
 *
 * A change by cookie must come from a page of this gateway, so that no other page can make it.
 *
 * @throws {ApiFault} `unauthenticated`, `key_not_for_console`, `origin_forbidden`
 */
export async function findLogin(request: Request, rules: AccessRules): Promise<Login> {
  const authorization = header(request.headers, 'authorization')
  if (authorization !== undefined) return findByKey(authorization, rules)
  const found = rules.sessions.find(readCookie(request.headers, rules.cookieName) ?? '')
  if (!found) throw unauthenticated(rules, 'missing', 'This needs a console key, or a login with one.')
  const changes = request.method !== 'GET' && request.method !== 'HEAD'
  if (changes && !request.headers.has('origin'))
    throw new ApiFault(
      'origin_forbidden',
      'A change by cookie must come from a page of this gateway: Origin is absent.',
    )
  return found
}

/** A person who may listen while their key or session is valid. */
export interface Admitted {
  readonly person: Caller
  /** Whether the key or session is still valid. */
  holds(): boolean
  /** Calls the listener if the key or session ends early. Returns a function that unsubscribes. */
  onEnd(listener: () => void): () => void
}

/**
 * Returns the person who requests a socket. The checks are those of a change, because another site's page also sends
 * our cookie, and there is no preflight.
 *
 * @throws {ApiFault} `host_forbidden`, `origin_forbidden`, `unauthenticated`, `key_not_for_console`
 */
export async function admitToSocket(request: Request, rules: AccessRules): Promise<Admitted> {
  checkHeaders(request, rules.origins)
  const { person } = await findLogin(request, rules)
  if (request.headers.has('authorization')) return admittedByKey(person, rules)
  if (!request.headers.has('origin'))
    throw new ApiFault('origin_forbidden', 'A socket by cookie must be opened by a page of this gateway.')
  const secret = readCookie(request.headers, rules.cookieName) ?? ''
  return {
    person,
    holds: () => rules.sessions.find(secret) !== undefined,
    onEnd: (listener) => rules.sessions.onEnd(secret, listener),
  }
}

function admittedByKey(person: Caller, { onEnded = () => () => {} }: AccessRules): Admitted {
  return {
    person,
    holds: () => true,
    onEnd: (listener) => onEnded(({ replaced }) => (replaced.has(person) ? listener() : undefined)),
  }
}

/** @throws {ApiFault} `unauthenticated`, `key_not_for_console` */
async function findByKey(authorization: string, rules: AccessRules): Promise<Login> {
  const answer = await rules.authenticator.authenticate({ authorization }, '/api')
  if (isRefused(answer)) throw unauthenticated(rules, answer.refused, 'The key is not known.', toKeyId(authorization))
  if (answer.for !== 'console')
    throw new ApiFault(
      'key_not_for_console',
      answer.for === 'mcp'
        ? "This is an agent's key, for /mcp. The API and the console need a console key."
        : 'This key is for a program that runs agents. The API and the console need a console key.',
    )
  return { person: answer.caller, loginAt: rules.sessions.nowMs(), credential: answer.id }
}

/** Returns the host that sends a request; `undefined` for any other credential, or none. */
export async function findHost(
  { headers }: Request,
  { authenticator }: Pick<AccessRules, 'authenticator'>,
): Promise<Credential | undefined> {
  const authorization = header(headers, 'authorization')
  if (authorization === undefined) return undefined
  const answer = await authenticator.authenticate({ authorization }, '/api')
  return isRefused(answer) || answer.for !== 'host' || answer.caller.run !== undefined ? undefined : answer
}

/** Returns the value of one cookie (RFC 6265 §4.2). */
export function readCookie(headers: Headers, name: string): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

function unauthenticated(
  { authenticator }: AccessRules,
  problem: RefusalReason,
  message: string,
  keyId?: string,
): ApiFault {
  const headers = { 'www-authenticate': authenticator.challenge(problem, '/api') }
  return new ApiFault('unauthenticated', message, headers, keyId)
}

function header(headers: Headers, name: string): string | undefined {
  return headers.get(name) ?? undefined
}

/** `GET /api/session`: who is logged in. */
export function sessionRoute(rules: AccessRules): Answer {
  return ({ request, person, query }) => {
    parseQuery(query, {})
    const session = rules.sessions.find(readCookie(request.headers, rules.cookieName) ?? '')
    const isOwn = session?.person === person && session.label !== undefined
    return { ...toBody(person, rules), ...(isOwn && { label: session.label }) }
  }
}

/** `POST /api/login` with `{ key }`: opens a session. Scripts and other sites cannot read the cookie. */
export async function login(request: Request, rules: AccessRules): Promise<Response> {
  parseQuery(queryOf(request), {})
  const key = (await readBody(request, ['key'])).get('key')
  if (typeof key !== 'string') throw invalidBody('The field "key" must be a string.')
  const known = await loginByKey(key, rules)
  const cookie = await openSession(rules, known, { isSecure: isSecure(request) })
  return Response.json(toBody(known.person, rules), { headers: { 'set-cookie': cookie } })
}

/** Returns the person of a console key. @throws {ApiFault} `unauthenticated`, `key_not_for_console` */
export function loginByKey(key: string, rules: AccessRules): Promise<Login> {
  return findByKey(`Bearer ${key}`, rules)
}

/** Opens a session and returns its cookie. */
export async function openSession(
  { cookieName, sessions }: AccessRules,
  { person, credential }: Pick<Login, 'person' | 'credential'>,
  { isSecure: secure, ...session }: NewSession & { readonly isSecure: boolean },
): Promise<string> {
  const secret = await sessions.open(person, { ...session, ...(credential !== undefined && { credential }) })
  return toCookie(cookieName, secret, SESSION_TTL_MS / 1000, secure)
}

/**
 * `POST /api/logout`: ends the session of the cookie, if there is one. `logoutUrl` also ends the session at the
 * authorization server.
 */
export async function logout(request: Request, rules: AccessRules): Promise<Response> {
  parseQuery(queryOf(request), {})
  const secret = readCookie(request.headers, rules.cookieName)
  const logoutUrl = secret === undefined ? undefined : await rules.sessions.close(secret)
  const cookie = toCookie(rules.cookieName, '', 0, isSecure(request))
  return Response.json(logoutUrl === undefined ? {} : { logoutUrl }, { headers: { 'set-cookie': cookie } })
}

function toBody(person: Caller, { hasTenants }: Pick<AccessRules, 'hasTenants'>): SessionBody {
  const { tenant, roles = [] } = person
  const of = tenant === undefined ? hasTenants?.() === true && { manyTenants: true as const } : { tenant }
  return { user: toName(person), ...of, roles }
}

/** Returns whether the page came over TLS. */
export function isSecure(request: Request): boolean {
  return request.headers.get('origin')?.startsWith('https:') === true
}

/**
 * Returns a `Set-Cookie` header (RFC 6265bis). It is `Secure` only if the page came over TLS, as browsers would reject the
 * cookie on plain loopback.
 */
function toCookie(name: string, value: string, maxAgeSeconds: number, secure: boolean): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`
}

/** The session fields of a login with OpenID Connect. */
export interface NewSession {
  /** When the claims expire, in wall-clock milliseconds. */
  readonly endsAtMs?: number
  /** When the person authenticated, in wall-clock milliseconds. Default: now. */
  readonly loginAtMs?: number
  readonly logoutUrl?: string
  /** The id of the credential, for a login by key. */
  readonly credential?: string
  /** The person and the session at the authorization server. */
  readonly issuedTo?: IssuedTo
  /** What people call the person, for pages only. */
  readonly label?: string
}

/** The sessions of people who are logged in. */
export interface LoginSessions {
  /** Opens a session and returns its secret of 256 random bits. */
  open(caller: Caller, session?: NewSession): Promise<string>
  find(secret: string): Login | undefined
  /** Returns the people who are logged in, once for each session. */
  people(): readonly Caller[]
  /** Returns the time in wall-clock milliseconds. */
  nowMs(): number
  /** Ends a session. Returns the URL at which the person also logs out, if there is one. */
  close(secret: string): Promise<string | undefined>
  /** Ends the sessions that an authorization server has ended. Returns their people. */
  endIssued(of: IssuedTo): Promise<readonly Caller[]>
  /** Ends the sessions of people whose key ended, and updates the people of other sessions. */
  replace(callers: EndedCallers): void
  /**
   * Calls the listener when an open session is closed, including by a newer session. Returns a function that
   * unsubscribes.
   */
  onEnd(secret: string, listener: () => void): () => void
}

interface SessionOptions {
  readonly clock: Clock
  /** How long a session lasts from the login, used or not. Default 12 h. */
  readonly ttlMs?: number
  /** The maximum number of sessions. Another session ends the oldest one. Default 1,000. */
  readonly max?: number
}

export const SESSION_TTL_MS: number = 12 * 60 * 60 * 1000

/** Returns sessions in memory. A restart ends all of them. */
export function createSessions({ clock, ttlMs = SESSION_TTL_MS, max = 1000 }: SessionOptions): LoginSessions {
  /** By digest, so that the time of a look-up reveals nothing about a secret. Oldest first. */
  const sessions = new Map<string, OpenSession>()
  const end = (key: string) => {
    const session = sessions.get(key)
    sessions.delete(key)
    session?.ending.emit()
  }
  return {
    async open(caller, { endsAtMs = Number.POSITIVE_INFINITY, loginAtMs = clock.wallMs(), ...more } = {}) {
      const now = clock.monotonicMs()
      for (const [key, open] of sessions) if (open.endsAtMs <= now) end(key)
      const oldest = sessions.keys().next()
      if (sessions.size >= max && !oldest.done) end(oldest.value)
      const secret = randomBytes(32).toString('base64url')
      // Measured on the monotonic clock, which people cannot set.
      const left = Math.min(ttlMs, endsAtMs - clock.wallMs())
      const loginMs = now - (clock.wallMs() - loginAtMs)
      const { logoutUrl, issuedTo, label } = more
      const times = { loginMs, endsAtMs: now + left }
      const session = { person: caller, ...times, logoutUrl, issuedTo, label, ending: createEmitter() }
      sessions.set(digest(secret), session)
      return secret
    },
    find(secret) {
      const session = sessions.get(digest(secret))
      const now = clock.monotonicMs()
      if (!session || session.endsAtMs <= now) return undefined
      // Measured on the monotonic clock, which people cannot set.
      const { person, label } = session
      return { person, loginAt: clock.wallMs() - (now - session.loginMs), ...(label !== undefined && { label }) }
    },
    people() {
      const now = clock.monotonicMs()
      return [...sessions.values()].flatMap(({ person, endsAtMs }) => (endsAtMs <= now ? [] : [person]))
    },
    nowMs: () => clock.wallMs(),
    async close(secret) {
      const key = digest(secret)
      const logoutUrl = sessions.get(key)?.logoutUrl
      end(key)
      return logoutUrl
    },
    async endIssued(of) {
      const found = [...sessions].filter(([, { issuedTo }]) => issuedTo && isAbout(of, issuedTo))
      for (const [key] of found) end(key)
      return found.map(([, { person }]) => person)
    },
    replace({ ended, replaced }) {
      for (const [key, session] of sessions) {
        const now = replaced.get(session.person)
        if (ended.has(session.person)) end(key)
        else if (now) sessions.set(key, { ...session, person: now })
      }
    },
    onEnd: (secret, listener) => sessions.get(digest(secret))?.ending.subscribe(listener) ?? (() => {}),
  }
}

interface OpenSession {
  readonly person: Caller
  readonly loginMs: number
  readonly endsAtMs: number
  readonly logoutUrl: string | undefined
  readonly issuedTo: IssuedTo | undefined
  readonly label: string | undefined
  readonly ending: Emitter<[]>
}

export function digest(secret: string): string {
  return hash('sha256', secret, 'base64')
}
