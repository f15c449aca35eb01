import { z } from 'zod'
import { issuerUrl, scope, text } from './oauth.ts'

/** How each user connects a server to their own account. */
export interface ServerOAuth {
  /** Absent: by a metadata document or by registration, as its authorization server offers. */
  readonly clientId?: string
  /** Absent for a public client. */
  readonly clientSecret?: string
  /** Absent: what the server asks for. */
  readonly scopes?: readonly string[]
  /** Absent: the first that the server's metadata names. */
  readonly issuer?: string
}

export const serverOAuthSchema = z
  .strictObject({
    clientId: text
      .describe(
        'The client that the gateway is registered as. Its redirect URI is <publicUrl>/connect/~callback/<server>. Default: a client ID metadata document, or dynamic registration, as the authorization server offers.',
      )
      .exactOptional(),
    clientSecret: text
      .describe('Prefer ${VAR}. Needs "issuer", which alone gets it. Default: none, a public client.')
      .exactOptional(),
    scopes: z
      .array(scope)
      .max(100, 'at most 100 scopes')
      .describe('Asked for. Default: what the server asks for.')
      .exactOptional(),
    issuer: issuerUrl
      .describe(
        'Its authorization server. Needed with a "clientSecret", where that is on a private address, and where the server has no metadata. Default: the first that its metadata names.',
      )
      .exactOptional(),
  })
  .describe('Each user connects the server to their own account (OAuth 2.1), and calls with their own token.')
