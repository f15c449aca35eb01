import type { OAuthConfig } from '../../config/oauth.ts'
import type { RefusalReason } from '../credential.ts'

/** The prefix of the metadata's path, before the path of the endpoint (RFC 9728 §3.1). */
const METADATA_PREFIX = '/.well-known/oauth-protected-resource'

/**
 * The path of an endpoint. It matches every valid app name, whether the app exists or not, so that names cannot be
 * probed.
 */
const RESOURCE = /^\/mcp(?:\/[a-z0-9_-]{1,64})?$/

/** The OAuth metadata and challenges of the endpoints. */
export interface ProtectedResources {
  /**
   * Returns the metadata of the endpoint whose path follows the well-known prefix; `undefined` if there is no such
   * endpoint.
   */
  metadata(path: string): object | undefined
  /** Returns the `WWW-Authenticate` header of a 401; `undefined` for a path that accepts no tokens. */
  challenge(refused: RefusalReason, resource: string): string | undefined
  /** Returns the `WWW-Authenticate` header of a 403 for a token that lacks scopes. */
  insufficientScope(scopes: readonly string[], resource: string): string
}

/**
 * Returns the protected resources of the gateway at `publicUrl`.
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
