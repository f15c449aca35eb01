import * as oauth from 'oauth4webapi'
import { readJson } from '@toolgate/values/json'
import { metadataUrls } from '../../auth/oauth/issuer.ts'
import { isSecureUrl } from '../../config/oauth.ts'
import type { ServerOAuth } from '../../config/server-oauth.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { ConnectProblem } from './problem.ts'

/** The authorization metadata of a server. */
export interface Discovered {
  /** The resource for which tokens are requested (RFC 8707). */
  readonly resource: string
  readonly server: oauth.AuthorizationServer
  /** The scopes to request. Absent: the authorization server decides. */
  readonly scopes: readonly string[] | undefined
}

const MAX_SCOPES = 100

/**
 * Finds where a server's users sign in: it sends a bare request, and reads the metadata that the 401 names (RFC 9728)
 * and the metadata of the authorization server (RFC 8414).
 *
 * Metadata of the resource is read only from the origin of the server.
 *
 * @throws {ConnectProblem}
 */
export async function discover(url: URL, configured: ServerOAuth, fetch: GuardedFetch): Promise<Discovered> {
  const challenge = await readChallenge(url, fetch)
  const found = await readResource(url, challenge?.resource_metadata, fetch)
  const issuer = configured.issuer ?? found?.authorization_servers?.[0]
  if (typeof issuer !== 'string')
    throw new ConnectProblem('the server does not say where its users sign in; name its "issuer" in the configuration')
  const server = await readServer(issuer, fetch)
  const wanted = configured.scopes ?? challenge?.scope?.split(' ') ?? found?.scopes_supported
  return {
    resource: found?.resource ?? withoutFragment(url),
    server,
    scopes: withOffline(wanted, configured, server),
  }
}

/** Adds the scope that many authorization servers require for a refresh token (OpenID Connect Core §11). */
function withOffline(
  wanted: readonly string[] | undefined,
  configured: ServerOAuth,
  { scopes_supported: known = [] }: oauth.AuthorizationServer,
): readonly string[] | undefined {
  const scopes = wanted?.filter((scope) => typeof scope === 'string' && scope !== '').slice(0, MAX_SCOPES)
  if (configured.scopes || !known.includes('offline_access')) return scopes
  return [...new Set([...(scopes ?? []), 'offline_access'])]
}

/** Sends a request without a token, and returns the challenge in its answer, if there is one. */
async function readChallenge(url: URL, fetch: GuardedFetch) {
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  try {
    await oauth.protectedResourceRequest('none', 'POST', url, headers, body, {
      [oauth.allowInsecureRequests]: true,
      // The token is removed, since the request must have none.
      [oauth.customFetch]: (to, { headers: { authorization: _, ...rest } }) =>
        fetch(to, { method: 'POST', headers: rest, body }),
    })
  } catch (error) {
    if (!(error instanceof oauth.WWWAuthenticateChallengeError)) throw error
    return error.cause.find(({ scheme }) => scheme === 'bearer')?.parameters
  }
  return undefined
}

/** Returns the metadata of the resource; `undefined` if it has none. */
async function readResource(url: URL, named: string | undefined, fetch: GuardedFetch) {
  for (const place of named === undefined ? resourceUrls(url) : [named]) {
    if (URL.parse(place)?.origin !== url.origin)
      throw new ConnectProblem('the server names metadata at another origin than its own')
    const response = await fetch(place, { headers: { accept: 'application/json' } })
    if (response.status === 404 && named === undefined) continue
    const body: unknown =
      response.status === 200
        ? await response
            .text()
            .then(readJson)
            .catch(() => undefined)
        : undefined
    const { resource } = (body ?? {}) as { readonly resource?: unknown }
    const parsed = typeof resource === 'string' ? URL.parse(resource) : null
    if (!parsed || !covers(parsed, url))
      throw new ConnectProblem(`${place} answered ${response.status} without metadata of this server`)
    return oauth.processResourceDiscoveryResponse(parsed, Response.json(body))
  }
  return undefined
}

/** RFC 9728 §3.1: first the URL for the server's path, then the URL for its origin. */
function resourceUrls({ origin, pathname }: URL): readonly string[] {
  const root = `${origin}/.well-known/oauth-protected-resource`
  return [...new Set([`${root}${pathname.replace(/\/$/, '')}`, root])]
}

/** Whether the server is the resource or a part of it. A token for the resource is sent to the server. */
function covers(resource: URL, { origin, pathname }: URL): boolean {
  if (resource.origin !== origin || resource.search !== '' || resource.hash !== '') return false
  const of = resource.pathname.replace(/\/$/, '')
  return pathname === of || pathname.startsWith(`${of}/`)
}

function withoutFragment(url: URL): string {
  return url.href.replace(/#.*$/, '')
}

/** @throws {ConnectProblem} */
export async function readServer(issuer: string, fetch: GuardedFetch): Promise<oauth.AuthorizationServer> {
  if (!isSecureUrl(issuer)) throw new ConnectProblem('the issuer is not an https URL')
  for (const place of metadataUrls(issuer)) {
    const response = await fetch(place, { headers: { accept: 'application/json' } })
    if (response.status === 404) continue
    const server = await oauth.processDiscoveryResponse(new URL(issuer), response).catch((cause: unknown) => {
      throw new ConnectProblem(`${place} is not the metadata of ${issuer}`, { cause })
    })
    return checkServer(server)
  }
  throw new ConnectProblem(`${issuer} has no metadata`)
}

/** @throws {ConnectProblem} */
function checkServer(server: oauth.AuthorizationServer): oauth.AuthorizationServer {
  const { authorization_endpoint: page, code_challenge_methods_supported: methods } = server
  if (typeof page !== 'string' || !isSecureUrl(page, true))
    throw new ConnectProblem('the authorization server has no page at an https URL')
  // OAuth 2.1 §4.1.1: a server that does not announce PKCE may ignore it, so that it protects nobody.
  if (!Array.isArray(methods) || !methods.includes('S256'))
    throw new ConnectProblem('the authorization server does not announce PKCE with S256')
  return server
}
