import type { AuthorizationServer } from 'oauth4webapi'
import { type JsonObject, readJson } from '@toolgate/values/json'
import { findMetadata, metadataUrls, shownValue } from '../../auth/oauth/metadata-places.ts'
import { isSecureUrl } from '../../config/oauth.ts'
import { bearerChallenge, type Challenge } from './bearer-challenge.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import type { OAuthServer } from './oauth-server.ts'
import { ConnectProblem } from './problem.ts'

/** The authorization metadata of a server. */
export interface Discovered {
  /** The resource for which tokens are requested (RFC 8707). */
  readonly resource: string
  readonly server: AuthorizationServer
  /** The scopes to request. Absent: the authorization server decides. */
  readonly scopes: readonly string[] | undefined
}

const MAX_SCOPES = 100
const MAX_ISSUERS = 4

/** The metadata of a protected resource (RFC 9728 §2). */
interface ResourceMetadata {
  readonly resource: string
  /** The authorization servers from which a client chooses. */
  readonly issuers: readonly string[]
  readonly scopes: readonly string[] | undefined
}

/**
 * Finds where a server's users sign in: it sends a bare request, and reads the metadata that the 401 names (RFC 9728)
 * and the metadata of the authorization server (RFC 8414).
 *
 * Metadata of the resource is read only from the origin of the server. Without any, the origin itself may be the
 * authorization server, as in MCP 2025-03-26.
 *
 * @throws {ConnectProblem} with every place and its answer
 */
export async function discover(server: OAuthServer, fetch: GuardedFetch): Promise<Discovered> {
  const url = new URL(server.url ?? '')
  const challenge = await readChallenge(url, fetch)
  const { resource: found, answers } = await readResource(url, challenge, fetch)
  const { issuer } = server.oauth
  const issuers = issuer === undefined ? (found?.issuers ?? []) : [issuer]
  const authority =
    issuers.length === 0 ? await readOwn(url, server, fetch, answers) : await readFirst(issuers, server, fetch)
  const wanted = server.oauth.scopes ?? toScopes(challenge.get('scope')) ?? found?.scopes
  return {
    resource: found?.resource ?? withoutFragment(url),
    server: authority,
    scopes: withOffline(wanted, server, authority),
  }
}

/** Adds the scope that many authorization servers require for a refresh token (OpenID Connect Core §11). */
function withOffline(
  wanted: readonly string[] | undefined,
  { oauth }: OAuthServer,
  { scopes_supported: known }: AuthorizationServer,
): readonly string[] | undefined {
  const scopes = wanted?.slice(0, MAX_SCOPES)
  if (oauth.scopes || !toScopes(known)?.includes('offline_access')) return scopes
  return [...new Set([...(scopes ?? []), 'offline_access'])]
}

/** Returns scopes, which are a list in metadata and a text in a challenge; `undefined` if there are none. */
function toScopes(value: unknown): readonly string[] | undefined {
  const words: readonly unknown[] = typeof value === 'string' ? value.split(/\s+/) : Array.isArray(value) ? value : []
  const scopes = words.filter((one): one is string => typeof one === 'string' && one !== '')
  return scopes.length === 0 ? undefined : scopes
}

/** Sends a request without a token, and returns the challenge in its answer. An error means that there is none. */
async function readChallenge(url: URL, fetch: GuardedFetch): Promise<Challenge> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const answer = await fetch(url.href, { method: 'POST', headers, body }).catch(() => undefined)
  return bearerChallenge(answer?.headers.get('www-authenticate') ?? null)
}

/** Returns the metadata of the resource, or the answer of each place where it may be. */
async function readResource(url: URL, challenge: Challenge, fetch: GuardedFetch) {
  const text = challenge.get('resource_metadata')
  const named = text === undefined ? null : URL.parse(text, url.href)
  const isOwn = named?.origin === url.origin
  const elsewhere = text === undefined || isOwn ? [] : [`${shownValue(text)} is not of the server's own origin`]
  const places = new Set([...(isOwn ? [named.href] : []), ...resourceUrls(url)])
  const read = await findMetadata([...places], asking(fetch), (body) => toResource(body, url))
  return 'found' in read
    ? { resource: read.found, answers: [] }
    : { resource: undefined, answers: [...elsewhere, ...read.answers] }
}

function toResource(body: JsonObject, url: URL): ResourceMetadata | string {
  const { resource, authorization_servers: issuers, scopes_supported: scopes } = body
  const parsed = typeof resource === 'string' ? URL.parse(resource) : null
  if (typeof resource !== 'string' || !parsed || !covers(parsed, url))
    return `has no metadata of this server, but of ${shownValue(resource)}`
  const named: readonly unknown[] = [issuers].flat()
  const texts = named.filter((issuer) => typeof issuer === 'string')
  return { resource, issuers: texts.slice(0, MAX_ISSUERS), scopes: toScopes(scopes) }
}

/** RFC 9728 §3.1: first the URL for the server's path, then the URL for its origin. */
function resourceUrls({ origin, pathname }: URL): readonly string[] {
  const root = `${origin}/.well-known/oauth-protected-resource`
  return [`${root}${pathname.replace(/\/$/, '')}`, root]
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

/** Returns a function that reads the JSON of a place. */
function asking(fetch: GuardedFetch) {
  return async (place: string) => {
    const response = await fetch(place, { headers: { accept: 'application/json' } })
    const body: unknown = await response
      .text()
      .then(readJson)
      .catch(() => undefined)
    return { status: response.status, body }
  }
}

/** Returns the authorization server that the origin of a server is, if it names none. @throws {ConnectProblem} */
async function readOwn(url: URL, server: OAuthServer, fetch: GuardedFetch, before: readonly string[]) {
  const read = await findServer(url.origin, fetch)
  if ('found' in read) return checkServer(read.found, url.origin, server)
  const mend = `servers.${server.name}.oauth.issuer: <url>`
  const asked = [...before, ...read.answers].join('; ')
  throw new ConnectProblem(`the server does not say where its users sign in; write ${mend}. Asked: ${asked}`, { mend })
}

/** Returns the first of several authorization servers that can be used. @throws {ConnectProblem} of all of them */
async function readFirst(issuers: readonly string[], server: OAuthServer, fetch: GuardedFetch) {
  const problems: ConnectProblem[] = []
  for (const issuer of issuers) {
    try {
      return await readServer(issuer, server, fetch)
    } catch (error) {
      if (!(error instanceof ConnectProblem)) throw error
      problems.push(error)
    }
  }
  const [mend] = problems.flatMap((problem) => problem.mend ?? [])
  const text = [...new Set(problems.map(({ message }) => message))].join('; ')
  throw new ConnectProblem(text, { cause: problems[0], ...(mend !== undefined && { mend }) })
}

/** @throws {ConnectProblem} */
export async function readServer(
  issuer: string,
  server: OAuthServer,
  fetch: GuardedFetch,
): Promise<AuthorizationServer> {
  if (!isSecureUrl(issuer)) throw new ConnectProblem('the issuer is not an https URL')
  const read = await findServer(issuer, fetch)
  if ('found' in read) return checkServer(read.found, issuer, server)
  throw new ConnectProblem(`no place has the metadata of ${issuer}. Asked: ${read.answers.join('; ')}`)
}

function findServer(issuer: string, fetch: GuardedFetch) {
  return findMetadata(metadataUrls(issuer), asking(fetch), (body): AuthorizationServer | string => {
    const { issuer: named } = body
    if (typeof named !== 'string' || !isSameIssuer(named, issuer))
      return `is not the metadata of ${issuer}, but of ${shownValue(named)}`
    return { ...body, issuer: named }
  })
}

/** Compares two issuers as URLs: an origin may be written with or without its slash, a path may not (RFC 3986 §6.2.3). */
function isSameIssuer(a: string, b: string): boolean {
  return a === b || (URL.parse(a)?.href ?? a) === URL.parse(b)?.href
}

/** @throws {ConnectProblem} */
function checkServer(found: AuthorizationServer, issuer: string, { name, oauth }: OAuthServer): AuthorizationServer {
  const { authorization_endpoint: page, code_challenge_methods_supported: methods } = found
  if (typeof page !== 'string' || !isSecureUrl(page, true))
    throw new ConnectProblem('the authorization server has no page at an https URL')
  const isVouchedFor = oauth.pkce === 'S256' && oauth.issuer !== undefined && isSameIssuer(oauth.issuer, issuer)
  // OAuth 2.1 §4.1.1: a server that does not announce PKCE may ignore it, so that it protects nobody.
  if (methods === undefined && !isVouchedFor) {
    const mend = `servers.${name}.oauth: { issuer: ${JSON.stringify(issuer)}, pkce: S256 }`
    const text = `the authorization server does not announce PKCE with S256; if you know that it checks S256, write ${mend}`
    throw new ConnectProblem(text, { mend })
  }
  if (methods !== undefined && (!Array.isArray(methods) || !methods.includes('S256')))
    throw new ConnectProblem('the authorization server announces PKCE without S256')
  return found
}
