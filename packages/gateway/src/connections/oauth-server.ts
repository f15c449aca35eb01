import { hash } from 'node:crypto'
import type { ServerConfig } from '../config/config.ts'
import type { ServerOAuth } from '../config/server-oauth.ts'

/** A server that users connect to their accounts. */
export type OAuthServer = Pick<ServerConfig, 'name' | 'url'> & { readonly oauth: ServerOAuth }

export const CALLBACK_PATH = '/connect/~callback'
/** The client ID metadata document: its URL is the id of the client. */
export const CLIENT_PATH = '/connect/~client.json'

/** What of an entry a connection was made for. With another text, its tokens are for something else. */
export function fingerprintOf({ url, oauth: { clientId, issuer, scopes } }: OAuthServer): string {
  return hash('sha256', JSON.stringify([url, clientId ?? null, issuer ?? null, scopes ?? null]), 'base64url').slice(
    0,
    22,
  )
}

/** Returns the document that `CLIENT_PATH` serves. */
export function clientDocument(publicUrl: string): object {
  return { client_id: `${publicUrl}${CLIENT_PATH}`, client_uri: publicUrl, ...metadataOf(publicUrl) }
}

/** The gateway as a client (RFC 7591 §2). */
export function metadataOf(publicUrl: string) {
  return {
    client_name: 'Toolgate',
    redirect_uris: [`${publicUrl}${CALLBACK_PATH}`],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
}
