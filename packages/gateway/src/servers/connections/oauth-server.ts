import { hash } from 'node:crypto'
import type { ServerConfig } from '../../config/config.ts'
import type { ServerOAuth } from '../../config/server-oauth.ts'

/** A server that users connect to their own accounts. */
export type OAuthServer = Pick<ServerConfig, 'name' | 'url' | 'proxy' | 'ca'> & { readonly oauth: ServerOAuth }

/** The callback path for authorization servers that include `iss` in each answer. */
const SHARED_CALLBACK = '/connect/~callback'
/** The path of the client ID metadata document, whose URL is the id of the client. */
export const CLIENT_PATH = '/connect/~client.json'

/**
 * Returns the callback path for a client. Each server and each registration has its own path, so that no authorization
 * server can present another's code as its own (RFC 9700 §4.4). Anybody may name the metadata document, so its answers
 * share one path, at which `iss` distinguishes them.
 */
export function callbackOf(kind: 'document' | 'configured' | 'registered', server: string, issuer: string): string {
  if (kind === 'document') return SHARED_CALLBACK
  const own = `${SHARED_CALLBACK}/${encodeURIComponent(server)}`
  return kind === 'configured' ? own : `${own}/${hash('sha256', issuer, 'base64url').slice(0, 22)}`
}

/**
 * Returns a fingerprint of the fields that a connection depends on. If they change, its tokens are no longer valid for
 * the server.
 */
export function fingerprintOf({ url, oauth: { clientId, issuer, scopes } }: OAuthServer): string {
  return hash('sha256', JSON.stringify([url, clientId ?? null, issuer ?? null, scopes ?? null]), 'base64url').slice(
    0,
    22,
  )
}

/** Returns the document that `CLIENT_PATH` serves. */
export function clientDocument(publicUrl: string): object {
  return { client_id: `${publicUrl}${CLIENT_PATH}`, client_uri: publicUrl, ...metadataOf(publicUrl, SHARED_CALLBACK) }
}

/** Returns the metadata of the gateway as a client (RFC 7591 §2). */
export function metadataOf(publicUrl: string, callback: string) {
  return {
    client_name: 'Toolgate',
    redirect_uris: [`${publicUrl}${callback}`],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
}
