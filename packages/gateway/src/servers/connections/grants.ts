import * as oauth from 'oauth4webapi'
import { authenticationOf, codeOf, type OAuthClient } from './clients.ts'
import type { Discovered } from './discovery.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { ConnectionRefused, ConnectProblem } from './problem.ts'
import { standardFetch } from './standard-answer.ts'

/** The tokens that an authorization server issued for a user. Never shown, logged or recorded. */
export interface GrantedTokens {
  readonly access: string
  readonly refresh?: string
  /** When the access token expires, in wall-clock milliseconds. Absent: unknown. */
  readonly expiresAt?: number
  /** How long before its expiry a token is refreshed, in milliseconds. */
  readonly earlyMs?: number
}

export interface Granted {
  readonly tokens: GrantedTokens
  readonly scopes: readonly string[] | undefined
  /** The user's account, if the authorization server states it. */
  readonly account?: string
}

/** An authorization server's metadata, and the gateway's client for it. */
export interface Party {
  readonly server: oauth.AuthorizationServer
  readonly client: OAuthClient
  readonly fetch: GuardedFetch
  readonly nowMs: () => number
}

const EARLY_MS = 60_000
const EARLY_PART = 0.2
const MAX_TOKEN_CHARS = 16 * 1024
const MAX_ACCOUNT_CHARS = 200

interface AuthorizationRequest {
  readonly redirectUri: string
  readonly state: string
  readonly verifier: string
}

/** Returns the URL of the page at which the user signs in and consents. */
export async function authorizationUrl(
  { server, client }: Pick<Party, 'server' | 'client'>,
  { resource, scopes = [] }: Pick<Discovered, 'resource' | 'scopes'>,
  { redirectUri, state, verifier }: AuthorizationRequest,
): Promise<string> {
  const url = new URL(server.authorization_endpoint ?? '')
  const params = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource,
    ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
    // OpenID Connect Core §11 requires consent for this scope.
    ...(scopes.includes('offline_access') ? { prompt: 'consent' } : {}),
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}

/**
 * Checks the authorization server's answer (state, `iss` of RFC 9207), and exchanges its code. @throws {ConnectProblem}
 */
export async function exchange(
  party: Party,
  answer: URLSearchParams,
  { redirectUri, state, verifier, resource }: AuthorizationRequest & Pick<Discovered, 'resource'>,
): Promise<Granted> {
  const { server, client } = party
  const asked = { client_id: client.id }
  const checked = oauth.validateAuthResponse(server, asked, answer, state)
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    asked,
    authenticationOf(client, server),
    checked,
    redirectUri,
    verifier,
    { ...optionsOf(party), additionalParameters: { resource } },
  )
  return toGranted(await oauth.processAuthorizationCodeResponse(server, asked, response), party)
}

/** @throws {ConnectionRefused} if the refresh token is no longer accepted. @throws {ConnectProblem} */
export async function refresh(party: Party, token: string, resource: string): Promise<Granted> {
  const { server, client } = party
  const asked = { client_id: client.id }
  try {
    const response = await oauth.refreshTokenGrantRequest(server, asked, authenticationOf(client, server), token, {
      ...optionsOf(party),
      additionalParameters: { resource },
    })
    return toGranted(await oauth.processRefreshTokenResponse(server, asked, response), party)
  } catch (error) {
    if (ENDED.has(codeOf(error) ?? ''))
      throw new ConnectionRefused('the authorization server ended it', { cause: error })
    throw error
  }
}

/** Errors after which no attempt can succeed: the grant has ended, or the client is unknown (RFC 6749 §5.2). */
const ENDED: ReadonlySet<string> = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client'])

/** Revokes tokens, if the authorization server supports it (RFC 7009). */
export async function revoke(party: Party, { access, refresh: further }: GrantedTokens): Promise<boolean> {
  const { server, client } = party
  if (server.revocation_endpoint === undefined) return false
  const asked = { client_id: client.id }
  const auth = authenticationOf(client, server)
  // A server that revokes a refresh token should also revoke its access tokens (§2.1), but not all do.
  for (const [token, hint] of [[further, 'refresh_token'] as const, [access, 'access_token'] as const]) {
    if (token === undefined) continue
    const additionalParameters = { token_type_hint: hint }
    const response = await oauth.revocationRequest(server, asked, auth, token, {
      ...optionsOf(party),
      additionalParameters,
    })
    await oauth.processRevocationResponse(response)
  }
  return true
}

/** Allows http in the library, as the guarded fetch checks addresses and also allows loopback. */
function optionsOf({ fetch }: Party) {
  return { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: standardFetch(fetch, 200) }
}

function toGranted(answer: oauth.TokenEndpointResponse, { nowMs }: Party): Granted {
  const { access_token: access, refresh_token: further, expires_in: seconds, token_type: type, scope } = answer
  if (type !== 'bearer') throw new ConnectProblem('the authorization server gave a token that is no bearer token')
  if (access.length > MAX_TOKEN_CHARS || (further ?? '').length > MAX_TOKEN_CHARS || !HEADER.test(access))
    throw new ConnectProblem('the authorization server gave a token that cannot be sent')
  const lifeMs = seconds === undefined ? undefined : Math.max(0, seconds) * 1000
  const account = accountOf(oauth.getValidatedIdTokenClaims(answer))
  return {
    tokens: {
      access,
      ...(further === undefined ? {} : { refresh: further }),
      ...(lifeMs === undefined
        ? {}
        : { expiresAt: nowMs() + lifeMs, earlyMs: Math.min(EARLY_MS, lifeMs * EARLY_PART) }),
    },
    scopes: scope?.split(' ').filter((one) => one !== ''),
    ...(account === undefined ? {} : { account }),
  }
}

/** RFC 6750 §2.1. */
const HEADER = /^[\w.~+/-]+=*$/

function accountOf(claims: oauth.IDToken | undefined): string | undefined {
  const names = [claims?.['email'], claims?.['preferred_username'], claims?.['name'], claims?.sub]
  const name = names.find((one) => typeof one === 'string' && one !== '')
  return typeof name === 'string' ? name.slice(0, MAX_ACCOUNT_CHARS) : undefined
}
