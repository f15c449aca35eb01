import { z } from 'zod'
import { issuerUrl, scope, text } from './oauth.ts'
import type { Written } from './schema/values.ts'

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
    pkce: z
      .literal('S256')
      .describe(
        'You vouch that the "issuer" checks PKCE with S256, which is always sent, although its metadata does not say so (Entra ID, Cognito). Default: such an issuer is refused.',
      )
      .exactOptional(),
  })
  .describe('Each user connects the server to their own account (OAuth 2.1), and calls with their own token.')

/** How each user connects a server to their own account. Without a `clientSecret` it is a public client. */
export type ServerOAuth = Written<typeof serverOAuthSchema>
