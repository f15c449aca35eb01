import type { Caller } from '@toolgate/core'
import { sha256Hex } from '@toolgate/values'
import type { OidcConfig } from '../../config/oidc.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { Route } from '../../heart/route.ts'
import { namingIssuers } from '../../config/other-names.ts'
import type { LoginsBody } from '../../model/rows.ts'
import { type AccessRules, createSessions, login, logout, sessionRoute, type LoginSessions } from '../http/access.ts'
import { nothingAt, parseQuery, queryOf } from '../http/request.ts'
import { endLogins } from './end-logins.ts'
import { createOidcRoutes, LOGOUT_PATH, type OidcRoutes } from './oidc.ts'
import { SharedSessions } from './shared-sessions.ts'

/** The logins of people, for other rooms. */
export interface Logins {
  readonly access: AccessRules
  /** The sessions of people who may use the connection pages, but no other part of the console. */
  readonly people: LoginSessions
  /** The login at an authorization server. Absent: people log in with keys. */
  readonly oidc: LoginsBody['oidc']
  /** Returns the people who are logged in. */
  signedIn(): readonly Caller[]
}

/** How long a person may use the connection pages after a login. */
export const PERSON_SECONDS = 3600

export const room: Room<Logins> = {
  name: 'login',
  async open(heart) {
    const { config, revisions, door } = heart
    const [sessions, people] = [await openSessions(heart, 'console'), await openSessions(heart, 'person')]
    revisions.onEnded((callers) => {
      sessions.replace(callers)
      people.replace(callers)
    })
    const access: AccessRules = {
      ...door,
      sessions,
      onEnded: revisions.onEnded,
      // With replicas, all of them use the same cookie.
      cookieName: heart.replica ? 'toolgate_session' : `toolgate_session_${door.port}`,
      hasTenants: () => hasTenants(heart),
    }
    const oidc = config.oidc && { name: config.oidc.server.name, url: '/api/oidc/login' }
    return {
      service: { access, people, oidc, signedIn: () => [...sessions.people(), ...people.people()] },
      routes: loginRoutes(access, oidc, openOidc(heart, [sessions, people])),
    }
  },
}

function loginRoutes(access: AccessRules, oidc: Logins['oidc'], flow: OidcRoutes | undefined): readonly Route[] {
  const by = 'anyone'
  const known = (request: Request) => {
    parseQuery(queryOf(request), {})
    return Response.json((oidc ? { oidc } : {}) satisfies LoginsBody)
  }
  const nothing = (request: Request) => nothingAt(new URL(request.url).pathname)
  return [
    { method: 'GET', path: '/api/login', by, answer: known },
    { method: 'POST', path: '/api/login', by, answer: (request) => login(request, access) },
    {
      method: 'GET',
      path: '/api/oidc/login',
      by,
      answer: (request) => flow?.begin(request, access) ?? nothing(request),
    },
    {
      method: 'GET',
      path: '/api/oidc/callback',
      by,
      answer: (request) => flow?.finish(request, access) ?? nothing(request),
    },
    {
      method: 'POST',
      path: LOGOUT_PATH,
      by,
      answer: (request) => flow?.logOut(request) ?? nothing(request),
    },
    { method: 'POST', path: '/api/logout', by, answer: (request) => logout(request, access) },
    { method: 'GET', path: '/api/session', by: 'person', answer: sessionRoute(access) },
  ]
}

/** Sessions that people opened at an authorization server survive a restart, if the state does. */
async function openSessions(
  { clock, config: { oidc }, door, stores, replica, onFault }: Heart,
  use: 'console' | 'person',
): Promise<LoginSessions> {
  const bounds = { clock, ...(use === 'person' && { ttlMs: PERSON_SECONDS * 1000 }) }
  const { authenticator } = door
  if (!replica && !(oidc && stores.kept)) return createSessions(bounds)
  const rules = oidc && rulesOf(oidc)
  const shared = new SharedSessions({ ...bounds, state: stores.state, authenticator, use, onFault, rules })
  await shared.opened()
  return shared
}

/** Identifies the rules that decide who logs in, and with which roles. It contains no secret. */
function rulesOf({ server: { issuer, name, claims, tenant, users }, clientId, roles }: OidcConfig): string {
  return sha256Hex(JSON.stringify([issuer, name, claims, tenant ?? null, [...users], clientId, [...roles]]))
}

function openOidc(heart: Heart, sessions: readonly LoginSessions[]): OidcRoutes | undefined {
  const { config, door, clock, stores, log } = heart
  const { oidc } = config
  const { publicUrl } = door
  if (!oidc || publicUrl === undefined) return undefined
  return createOidcRoutes({
    config: oidc,
    naming: namingIssuers(config),
    publicUrl,
    clock,
    state: stores.state,
    log: (message, level = 'warn') => log({ level, message }),
    onLogin: (person, label) => door.people.noteLogin(person, oidc.server.issuer, label),
    onRefused: (person) => door.people.noteRefusedLogin(person, oidc.server.issuer),
    onLogout: (ended) => endLogins(ended, oidc, sessions, heart),
  })
}

/** Whether there are tenants, either in tokens or in the keys of the file. */
function hasTenants({ config, revisions }: Heart): boolean {
  if (config.oauth?.issuers.some(({ tenant, claims }) => (tenant ?? claims.tenant) !== undefined)) return true
  return new Set(revisions.current.callers.map(({ caller }) => caller.tenant)).size > 1
}
