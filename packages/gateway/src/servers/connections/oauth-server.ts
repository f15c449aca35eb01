import { hash } from 'node:crypto'
import type { ServerConfig } from '../../config/config.ts'
import type { ServerOAuth } from '../../config/server-oauth.ts'

/** A server that users connect to their accounts. */
export type OAuthServer = Pick<ServerConfig, 'name' | 'url'> & { readonly oauth: ServerOAuth }

/** Where the answers of authorization servers arrive that name their issuer in each. */
const SHARED_CALLBACK = '/connect/~callback'
/** The client ID metadata document: its URL is the id of the client. */
export const CLIENT_PATH = '/connect/~client.json'

/**
 * Returns where the answers for a client arrive. Each server has its own place, and each registration, so that no
 * authorization server can pass off another's code as its own (RFC 9700 §4.4). Those for the metadata document, which
 * anybody may name, share one: there, `iss` tells them apart.
 */
export function callbackOf(kind: 'document' | 'configured' | 'registered', server: string, issuer: string): string {
  if (kind === 'document') return SHARED_CALLBACK
  const own = `${SHARED_CALLBACK}/${encodeURIComponent(server)}`
  return kind === 'configured' ? own : `${own}/${hash('sha256', issuer, 'base64url').slice(0, 22)}`
}

/** What of an entry a connection was made for. With another text, its tokens are for something else. */
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

/** The gateway as a client (RFC 7591 §2). */
export function metadataOf(publicUrl: string, callback: string) {
  return {
    client_name: 'Toolgate',
    redirect_uris: [`${publicUrl}${callback}`],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
}
