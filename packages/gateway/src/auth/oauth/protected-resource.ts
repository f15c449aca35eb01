import type { OAuthConfig } from '../../config/oauth.ts'
import type { RefusalReason } from '../credential.ts'

/** Where the metadata of an endpoint is: before its path (RFC 9728 §3.1). */
const METADATA_PREFIX = '/.well-known/oauth-protected-resource'

/** The endpoints of an app have the names that apps may have, whether there is such an app or not: names cannot be guessed. */
const RESOURCE = /^\/mcp(?:\/[a-z0-9_-]{1,64})?$/

/** What clients learn about the endpoints as resources of OAuth. */
export interface ProtectedResources {
  /** Returns the metadata of the endpoint whose path follows the well-known prefix; `undefined` where there is no endpoint. */
  metadata(path: string): object | undefined
  /** Returns the `WWW-Authenticate` header of a 401; `undefined` for a path that no token opens. */
  challenge(refused: RefusalReason, resource: string): string | undefined
  /** Returns the header of a 403 for a token that lacks scopes. */
  insufficientScope(scopes: readonly string[], resource: string): string
}

/**
 * Returns the protected resources of a gateway that is reached at `publicUrl`.
 *
 * @example
 * protectedResources(oauth, 'https://tools.example.com').challenge('missing', '/mcp')
 * // Bearer resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"
 */
export function protectedResources({ issuers, scopes, stepUp }: OAuthConfig, publicUrl: string): ProtectedResources {
  const supported = [...new Set([...scopes, ...stepUp])]
  const metadataOf = (resource: string) => `resource_metadata="${publicUrl}${METADATA_PREFIX}${resource}"`
  const wanted = scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
  return {
    metadata: (path) =>
      RESOURCE.test(path)
        ? {
            resource: `${publicUrl}${path}`,
            authorization_servers: issuers.map(({ issuer }) => issuer),
            bearer_methods_supported: ['header'],
            ...(supported.length === 0 ? {} : { scopes_supported: supported }),
          }
        : undefined,
    challenge(refused, resource) {
      if (!RESOURCE.test(resource)) return undefined
      // RFC 6750 §3.1: without a bearer token there is no error code.
      const error = refused === 'missing' ? '' : 'error="invalid_token", '
      return `Bearer ${error}${metadataOf(resource)}${wanted}`
    },
    insufficientScope: (missing, resource) =>
      `Bearer error="insufficient_scope", scope="${missing.join(' ')}", ${metadataOf(resource)}`,
  }
}
