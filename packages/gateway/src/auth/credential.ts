import { hash } from 'node:crypto'
import type { Caller } from '@toolgate/core'

/** The authenticated sender of a request. */
export interface Credential {
  /** Identifies the credential in tasks and records without revealing it. A refreshed token keeps the id. */
  readonly id: string
  /** The kind of sender. `mcp`: an agent. `console`: a person. `host`: a program that runs agents. */
  readonly for: 'mcp' | 'console' | 'host'
  /** Frozen, and the same object for each request, so that its views are found by identity. */
  readonly caller: Caller
  /** The apps that the credential opens. Absent: `/mcp` and every app. */
  readonly apps?: readonly string[]
  /** When the credential expires, in wall-clock milliseconds. */
  readonly expiresAtMs?: number
  /** `key`, or the URL of the authorization server. */
  readonly issuer: string
  /** The id of the OAuth client. */
  readonly client?: string
  /** What people call the user, for pages only. Nothing may be decided by it. */
  readonly label?: string
  /** The scopes of a token. */
  readonly scopes?: readonly string[]
}

/** Why a request has no credential. */
export interface Refusal {
  readonly refused: RefusalReason
  /** Details for the operator. The client does not receive them. */
  readonly detail?: string
}

/** `unavailable`: the authorization server that could verify the token cannot be reached. */
export type RefusalReason = 'missing' | 'malformed' | 'unknown' | 'unavailable'

/** Finds the credential of a request. */
export interface Authenticator {
  /**
   * Returns the credential of a request for a resource: the path of an endpoint, such as `/mcp` or `/mcp/<app>`.
   *
   * Never throws or rejects.
   */
  authenticate(
    headers: { readonly authorization?: string | undefined },
    resource: string,
  ): Promise<Credential | Refusal>
  /** Returns the current credential with an id, for work without a request. `undefined` if it is no longer accepted. */
  current(id: string): Credential | undefined
  /** Returns the current credential of a running request. `undefined` if it is no longer accepted. */
  renewed(credential: Credential): Credential | undefined
  /** Returns the `WWW-Authenticate` header of a 401 for a resource. */
  challenge(refused: RefusalReason, resource: string): string
  /** Returns the `WWW-Authenticate` header of a 403, for a credential that lacks scopes. */
  insufficientScope(scopes: readonly string[], resource: string): string
}

/** The `WWW-Authenticate` headers of resources that accept OAuth tokens. */
interface Challenges {
  /** Returns `undefined` for a path that accepts no tokens. */
  challenge(refused: RefusalReason, resource: string): string | undefined
  insufficientScope(scopes: readonly string[], resource: string): string
}

/** A bearer token of a request. */
export interface Bearer {
  readonly token: string
  /** The SHA-256 of the token, in base64. */
  readonly digest: string
}

/** One kind of credentials: API keys, or the tokens of authorization servers. */
export interface CredentialSource {
  /** Returns `undefined` for a token that is not of this kind. Never throws or rejects. */
  find(bearer: Bearer, resource: string): Promise<Credential | Refusal | undefined>
  current(id: string): Credential | undefined
  /**
   * Returns the current credential of the same token. Another token of the same client may have other rights. Absent if
   * each id has one token.
   */
  renewed?(credential: Credential): Credential | undefined
}

const MAX_HEADER_LENGTH = 8 * 1024
/** RFC 9110 §11.1: the scheme is case-insensitive. */
const BEARER = /^bearer(?: |$)/i
/** Wider than RFC 6750's b64token, so that every configured key without spaces is accepted. */
const BEARER_TOKEN = /^bearer +([\x21-\x7e]+)$/i

const MISSING: Refusal = Object.freeze({ refused: 'missing' })
const MALFORMED: Refusal = Object.freeze({ refused: 'malformed' })
const UNKNOWN: Refusal = Object.freeze({ refused: 'unknown' })

/**
 * Combines several kinds of credentials in one authenticator. The first kind that recognizes a token decides.
 *
 * `resources` provides the headers for resources that accept OAuth tokens. `onFound` is called with the sender of each
 * request.
 */
export function createAuthenticator(
  sources: readonly CredentialSource[],
  resources?: Challenges,
  onFound: (credential: Credential) => void = () => {},
): Authenticator {
  return {
    async authenticate({ authorization }, resource) {
      const bearer = readBearer(authorization)
      if ('refused' in bearer) return bearer
      for (const source of sources) {
        const found = await source.find(bearer, resource)
        if (!found) continue
        if (!isRefused(found)) onFound(found)
        return found
      }
      return UNKNOWN
    },
    current(id) {
      for (const source of sources) {
        const credential = source.current(id)
        if (credential) return credential
      }
      return undefined
    },
    renewed(credential) {
      for (const source of sources) {
        const now = source.renewed ? source.renewed(credential) : source.current(credential.id)
        if (now) return now
      }
      return undefined
    },
    challenge: (refused, resource) => resources?.challenge(refused, resource) ?? toChallenge(refused),
    insufficientScope: (scopes, resource) =>
      resources?.insufficientScope(scopes, resource) ??
      `Bearer realm="toolgate", error="insufficient_scope", scope="${scopes.join(' ')}"`,
  }
}

export function isRefused(answer: Credential | Refusal): answer is Refusal {
  return 'refused' in answer
}

/** Returns whether an agent's credential opens an endpoint: `/mcp` or `/mcp/<app>`. */
export function opensEndpoint({ apps }: Pick<Credential, 'apps'>, resource: string): boolean {
  return apps === undefined || apps.some((app) => resource === toResource(app))
}

/** Returns the path of the endpoint of an app, or of all tools. */
export function toResource(app: string | undefined): string {
  return app === undefined ? '/mcp' : `/mcp/${app}`
}

/**
 * Returns the caller of the current credential, for work at an agent endpoint; `undefined` if the credential does not
 * open it.
 */
export function callerAt(now: Credential | undefined, resource: string): Caller | undefined {
  return now?.for === 'mcp' && opensEndpoint(now, resource) ? now.caller : undefined
}

function readBearer(header: string | undefined): Bearer | Refusal {
  if (header === undefined || !BEARER.test(header)) return MISSING
  if (header.length > MAX_HEADER_LENGTH) return MALFORMED
  const token = BEARER_TOKEN.exec(header)?.[1]
  return token === undefined ? MALFORMED : { token, digest: hash('sha256', token, 'base64') }
}

/**
 * Returns the `WWW-Authenticate` header of a 401 for a resource that accepts only keys.
 *
 * RFC 6750 §3.1: without a bearer token there is no error code.
 */
function toChallenge(refused: RefusalReason): string {
  return refused === 'missing' ? 'Bearer realm="toolgate"' : 'Bearer realm="toolgate", error="invalid_token"'
}

/** Returns an id of the token in an `Authorization` header: the start of its SHA-256, which does not reveal it. */
export function toKeyId(authorizationHeader: string | undefined): string | undefined {
  if (authorizationHeader === undefined || !BEARER.test(authorizationHeader)) return undefined
  const token = authorizationHeader.slice(0, MAX_HEADER_LENGTH).replace(/^bearer */i, '')
  return hash('sha256', token, 'hex').slice(0, KEY_ID_LENGTH)
}

const KEY_ID_LENGTH = 8
