import * as oauth from 'oauth4webapi'
import { authenticationOf, codeOf, type OAuthClient } from './clients.ts'
import type { Discovered } from './discovery.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { ConnectionRefused, ConnectProblem } from './problem.ts'

/** What an authorization server gave for a user. Never shown, logged or recorded. */
export interface Tokens {
  readonly access: string
  readonly refresh?: string
  /** Wall-clock milliseconds. Absent: unknown. */
  readonly expiresAt?: number
  /** How long before its end a token is refreshed. */
  readonly earlyMs?: number
}

export interface Granted {
  readonly tokens: Tokens
  readonly scopes: readonly string[] | undefined
  /** Who signed in, if the authorization server says so. */
  readonly account?: string
}

/** One way to talk to an authorization server: with its metadata, as a client. */
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

export interface AuthorizationRequest {
  readonly redirectUri: string
  readonly state: string
  readonly verifier: string
}

/** Returns the page where the user signs in and consents. */
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
    // OpenID Connect Core §11.
    ...(scopes.includes('offline_access') ? { prompt: 'consent' } : {}),
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return url.href
}

/** Checks the answer of the authorization server (state, `iss` of RFC 9207), and exchanges its code. @throws {ConnectProblem} */
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

/** @throws {ConnectionRefused} where the refresh token is no longer accepted. @throws {ConnectProblem} */
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

/** A grant that is over, and a client that the server no longer knows: no later attempt can succeed (RFC 6749 §5.2). */
const ENDED: ReadonlySet<string> = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client'])

/** Has a token withdrawn, where that is offered (RFC 7009). */
export async function revoke(party: Party, { access, refresh: further }: Tokens): Promise<boolean> {
  const { server, client } = party
  if (server.revocation_endpoint === undefined) return false
  const asked = { client_id: client.id }
  const auth = authenticationOf(client, server)
  // A server that withdraws a refresh token should withdraw its access tokens, too; not all do (§2.1).
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

/** The guarded fetch decides which addresses are secure: it also knows loopback. */
function optionsOf({ fetch }: Party) {
  return { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetch }
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
