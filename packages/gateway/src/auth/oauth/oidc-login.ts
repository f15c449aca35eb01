import { createHash, randomBytes } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { type Caller, defineCaller } from '@toolgate/core'
import { isObject, type JsonObject, readOwnJson } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { OidcConfig } from '../../config/oidc.ts'
import type { NamingIssuer } from '../../config/other-names.ts'
import { Identities, labelOf, lackOf } from './claims.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
import { toBasic } from './introspection.ts'
import { SecretSealer } from '../../util/sealer.ts'
import { Issuer, type LoginMetadata } from './issuer.ts'
import { isOf, parseJwt, verifyJwt } from './jwt.ts'
import { useLogoutToken } from './logout-token.ts'
import type { IssuedTo, ReportedLogout } from '../issued-to.ts'
import { claimAt } from './read-claims.ts'
import { remember } from './remember.ts'

export interface OidcLoginDeps {
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  /** The URL to which the authorization server returns people after a login. */
  readonly redirectUri: string
  /** The URL to which it returns people after a logout. */
  readonly homeUrl: string
  readonly state: Pick<StateStore, 'get' | 'add' | 'take'>
  /** All issuers that name people. Default: the one of this login. */
  readonly naming?: readonly NamingIssuer[] | undefined
}

/** Options of one login. */
export interface LoginWish {
  /** The path of the page to return to. */
  readonly back: string
  /** Whether the person must authenticate again, even if the authorization server has a session for them. */
  readonly isFresh?: boolean
}

/** A person who has logged in. */
export interface OidcPerson {
  readonly person: Caller
  /** When they authenticated, in wall-clock milliseconds. 0 if it is unknown. */
  readonly loginAtMs: number
  /** When the claims expire, in wall-clock milliseconds. */
  readonly endsAtMs: number
  /** The URL at which the person also logs out of the authorization server. */
  readonly logoutUrl?: string
  /** The person and the session at the authorization server, which it names when it ends them. */
  readonly issuedTo: IssuedTo
  /** What people call the person, for pages only. */
  readonly label?: string
}

/** A failed login. The message is for the log. */
export class LoginProblem extends Error {
  override readonly name = 'LoginProblem'
  /** The person, if they proved who they are but may not log in. */
  readonly person: Caller | undefined

  constructor(message: string, person?: Caller) {
    super(message)
    this.person = person
  }
}

/**
 * A login that has begun. A cookie of the browser holds it, so that the gateway stores nothing for logins that never
 * finish.
 */
interface LoginAttempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly back: string
  /** When the attempt expires, in wall-clock milliseconds. */
  readonly endsAtMs: number
}

/** The time limit for a login. */
export const ATTEMPT_MS: number = 10 * 60_000
const USED = 'gateway/oidc-used/'
/**
 * The parameter `max_age`. Any value makes the ID token state when the person authenticated (OpenID Connect Core
 * §3.1.2.1).
 */
const MAX_AGE_SECONDS = 365 * 24 * 60 * 60

const MAX_OVER = 1000

/** Logs people in with OpenID Connect: code flow with PKCE, state, nonce, and the issuer of the answer (RFC 9207). */
export class OidcLogin {
  readonly #config: OidcConfig
  readonly #deps: OidcLoginDeps
  readonly #issuer: Issuer
  readonly #sealer: SecretSealer
  /** Attempts that were seen to have expired, oldest first. If the clock is set back, they stay expired. */
  readonly #over = new Map<string, true>()

  constructor(config: OidcConfig, deps: OidcLoginDeps) {
    this.#config = config
    this.#deps = deps
    this.#issuer = new Issuer(config.server, deps.clock)
    this.#sealer = new SecretSealer(deps)
  }

  /**
   * Begins a login. Returns the address for the browser, and the value of its cookie.
   *
   * @throws {IssuerError}
   */
  async begin({ back, isFresh = false }: LoginWish): Promise<{ readonly url: string; readonly cookie: string }> {
    const { authorizationEndpoint } = await this.#metadata()
    const [state, nonce, verifier] = [random(), random(), random()]
    const attempt: LoginAttempt = { state, nonce, verifier, back, endsAtMs: this.#deps.clock.wallMs() + ATTEMPT_MS }
    const url = new URL(authorizationEndpoint)
    const params = {
      response_type: 'code',
      client_id: this.#config.clientId,
      redirect_uri: this.#deps.redirectUri,
      scope: this.#config.scopes.join(' '),
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      max_age: `${MAX_AGE_SECONDS}`,
      ...(isFresh ? { prompt: 'login' } : {}),
    }
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
    return { url: url.href, cookie: await this.#sealer.seal(JSON.stringify(attempt), this.#bound()) }
  }

  /**
   * Finishes a login with the answer of the authorization server. An attempt can log in once.
   *
   * @throws {LoginProblem | TokenProblem | IssuerError}
   */
  async finish(answer: URLSearchParams, cookie: string): Promise<OidcPerson & { readonly back: string }> {
    const attempt = await this.#openAttempt(cookie)
    if (answer.get('state') !== attempt.state) throw new LoginProblem('the answer belongs to another login')
    const metadata = await this.#metadata()
    const named = answer.get('iss')
    const isOther = named === null ? metadata.namesIssuer : !isOf(this.#config.server, named)
    if (isOther) throw new LoginProblem('the answer is of another authorization server')
    const code = answer.get('code')
    if (code === null) throw new LoginProblem(`the authorization server refused the login${reasonIn(answer)}`)
    const { idToken, accessToken } = await this.#exchange(metadata, code, attempt.verifier)
    const claims = await this.#verify(idToken, attempt.nonce)
    const person = this.#toPerson(claims, await this.#withUserinfo(claims, accessToken), idToken)
    // Only successful logins are stored, so nobody can fill the store.
    const isFirst = await this.#deps.state.add(USED + attempt.state, true, { expiresAt: attempt.endsAtMs })
    if (!isFirst) throw new LoginProblem('this login has ended')
    return { ...person, back: attempt.back }
  }

  /** Whether the authorization server can report ended sessions. Known after the first login has begun. */
  get reportsLogouts(): boolean {
    return this.#issuer.reportsLogouts === true
  }

  /**
   * Verifies a logout token and passes on who was logged out, once.
   *
   * @throws {TokenProblem | IssuerError}
   */
  async useLogoutToken(token: string, end: (logout: ReportedLogout) => Promise<void>): Promise<void> {
    await this.#metadata()
    await useLogoutToken(token, this.#issuer, { ...this.#deps, clientId: this.#config.clientId }, end)
  }

  async #openAttempt(cookie: string): Promise<LoginAttempt> {
    const text = await this.#sealer.open(cookie, this.#bound())
    const attempt = text === undefined ? undefined : (readOwnJson(text) as LoginAttempt)
    if (!attempt || this.#isOver(attempt)) throw new LoginProblem('this login has ended, or began in another browser')
    return attempt
  }

  #isOver({ state, endsAtMs }: LoginAttempt): boolean {
    const isOver = endsAtMs <= this.#deps.clock.wallMs()
    if (isOver) remember(this.#over, state, true, MAX_OVER)
    return isOver || this.#over.has(state)
  }

  /** The associated data of an attempt, which binds it to one client of one authorization server. */
  #bound(): unknown {
    const { clientId, server } = this.#config
    return ['oidc login', server.issuer, clientId, this.#deps.redirectUri]
  }

  async #metadata(): Promise<LoginMetadata> {
    if (!this.#issuer.isFresh || !this.#issuer.login) await this.#issuer.refresh()
    const { login, problem } = this.#issuer
    if (!login) throw new IssuerError(problem ?? 'the metadata has no endpoints for a login')
    return login
  }

  /** Exchanges a code for an ID token, and the access token beside it. */
  async #exchange(
    { tokenEndpoint, secretInForm }: LoginMetadata,
    code: string,
    verifier: string,
  ): Promise<LoginTokens> {
    const { clientId, clientSecret } = this.#config
    const inHeader = clientSecret !== undefined && !secretInForm
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.#deps.redirectUri,
      code_verifier: verifier,
      ...(inHeader ? {} : { client_id: clientId }),
      ...(inHeader || clientSecret === undefined ? {} : { client_secret: clientSecret }),
    })
    const { status, body } = await fetchJson(tokenEndpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(inHeader ? { authorization: `Basic ${toBasic(clientId, clientSecret)}` } : {}),
      },
      body: form.toString(),
      proxy: this.#config.server.proxy,
    })
    const { id_token: idToken, access_token: accessToken, ...rest } = isObject(body) ? body : {}
    if (status !== 200 || typeof idToken !== 'string')
      throw new LoginProblem(
        `${tokenEndpoint} answered ${status} without an ID token${reasonIn(new Map(Object.entries(rest)))}`,
      )
    return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : undefined }
  }

  /**
   * Returns the claims about the person. Those that the ID token lacks come from the userinfo endpoint (OpenID Connect
   * Core §5.3), as some providers keep the ID token small.
   */
  async #withUserinfo(claims: JsonObject, accessToken: string | undefined): Promise<JsonObject> {
    const { user, roles, tenant } = this.#config.server.claims
    const isWhole = [user, roles, tenant].every((path) => path === undefined || claimAt(claims, path) !== undefined)
    const { userinfoEndpoint: url } = this.#issuer.login ?? {}
    if (isWhole || url === undefined || accessToken === undefined) return claims
    const headers = { authorization: `Bearer ${accessToken}` }
    const { status, body } = await fetchJson(url, { headers, proxy: this.#config.server.proxy })
    // Only the ID token is signed for this login, so the rest may not name another person.
    if (status !== 200 || !isObject(body) || body['sub'] !== claims['sub'])
      throw new LoginProblem(`${url} answered ${status} without the claims of the person`)
    return { ...body, ...claims }
  }

  /** Verifies an ID token (OpenID Connect Core §3.1.3.7). */
  async #verify(token: string, nonce: string): Promise<JWTPayload> {
    const { clientId } = this.#config
    const { claims } = await verifyJwt(parseJwt(token), this.#issuer, this.#deps.clock.wallMs())
    const { iat, sub, nonce: own, azp: party } = claims
    if (iat === undefined || sub === undefined) throw new LoginProblem('the ID token lacks "iat" or "sub"')
    if (own !== nonce) throw new LoginProblem('the ID token belongs to another login')
    const audiences = [claims.aud ?? []].flat()
    const isOurs = audiences.includes(clientId) && (party === undefined ? audiences.length === 1 : party === clientId)
    if (!isOurs) throw new LoginProblem('the ID token is for another client')
    return claims
  }

  /** `claims` are those of the ID token, and `all` includes those of the userinfo endpoint. */
  #toPerson(claims: JWTPayload, all: JsonObject, idToken: string): OidcPerson {
    const { server, roles: rolesOf } = this.#config
    // Claims about the client do not identify the person.
    const { azp, client_id: client, appid, cid, act, scope, scp, ...own } = all
    const { caller } = new Identities(undefined, this.#deps.naming ?? [server]).of(own, server)
    const groups = (caller.roles ?? []).filter((group) => rolesOf.has(group))
    if (groups.length === 0) {
      const lack = lackOf(own, { roles: groups }, server)
      throw new LoginProblem(`this person may not log in here: ${lack}`, caller)
    }
    const roles = [...new Set(groups.flatMap((group) => rolesOf.get(group) ?? []))]
    const { user, tenant, aliases } = caller
    const of = { ...(tenant === undefined ? {} : { tenant }), ...(aliases && { aliases }) }
    const person = defineCaller({ user, roles, ...of })
    const logoutUrl = this.#logoutUrl(idToken)
    const endsAtMs = (claims.exp as number) * 1000
    const { auth_time: loginAt, sub = '', sid } = claims
    const label = labelOf(own)
    const issuedTo = { sub, ...(typeof sid === 'string' && { sid }) }
    const loginAtMs = typeof loginAt === 'number' ? Math.min(loginAt * 1000, this.#deps.clock.wallMs()) : 0
    const more = { ...(logoutUrl === undefined ? {} : { logoutUrl }), ...(label === undefined ? {} : { label }) }
    return { person, loginAtMs, endsAtMs, issuedTo, ...more }
  }

  /** Returns the logout URL (OpenID Connect RP-Initiated Logout §2). */
  #logoutUrl(idToken: string): string | undefined {
    const { endSessionEndpoint } = this.#issuer.login ?? {}
    if (endSessionEndpoint === undefined) return undefined
    const url = new URL(endSessionEndpoint)
    url.searchParams.set('id_token_hint', idToken)
    url.searchParams.set('client_id', this.#config.clientId)
    url.searchParams.set('post_logout_redirect_uri', this.#deps.homeUrl)
    return url.href
  }
}

interface LoginTokens {
  readonly idToken: string
  readonly accessToken: string | undefined
}

const MAX_REASON = 300

/** Returns the error of an answer (RFC 6749 §4.1.2.1, §5.2), as the end of a message for the log. */
function reasonIn(answer: { get(name: string): unknown }): string {
  const parts = [answer.get('error'), answer.get('error_description')].filter((part) => typeof part === 'string')
  return parts.length === 0 ? '' : ` (${JSON.stringify(parts.join(': ').slice(0, MAX_REASON))})`
}

function random(): string {
  return randomBytes(32).toString('base64url')
}
