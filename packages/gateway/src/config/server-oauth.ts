import { z } from 'zod'
import { issuerUrl, isSecureUrl, scope, text } from './oauth.ts'
import { found, type Reading } from './reading.ts'
import type { ServerInput } from './schema.ts'

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
        'The client that the gateway is registered as. Its redirect URI is <publicUrl>/connect/~callback. Default: a client ID metadata document, or dynamic registration, as the authorization server offers.',
      )
      .exactOptional(),
    clientSecret: text.describe('Prefer ${VAR}. Default: none, a public client.').exactOptional(),
    scopes: z
      .array(scope)
      .max(100, 'at most 100 scopes')
      .describe('Asked for. Default: what the server asks for.')
      .exactOptional(),
    issuer: issuerUrl
      .describe(
        'Its authorization server. Needed where that is on a private address, or where the server has no metadata. Default: the first that its metadata names.',
      )
      .exactOptional(),
  })
  .describe('Each user connects the server to their own account (OAuth 2.1), and calls with their own token.')

/** Checks what stands beside `oauth` of a server. */
export function checkServerOAuth({ source }: Reading, name: string, input: ServerInput): void {
  const { oauth, url, headers = {}, command, package: from } = input
  if (!oauth) return
  const at = ['servers', name, 'oauth']
  if (input.per === 'shared')
    source.report(
      ['servers', name, 'per'],
      'found "shared" with "oauth", expected "user": the account of one user must not serve others',
    )
  if (url === undefined || command !== undefined || from !== undefined)
    source.report(at, 'found "oauth", expected it for a server that is reached by "url" and not started', {
      atKey: true,
    })
  else if (!isSecureUrl(url, true))
    source.report(
      ['servers', name, 'url'],
      `${found(source, ['servers', name, 'url'])} with "oauth", expected https, or http on loopback`,
    )
  const header = Object.keys(headers).find((one) => one.toLowerCase() === 'authorization')
  if (header !== undefined)
    source.report(
      ['servers', name, 'headers', header],
      'found it beside "oauth", expected one of them: a request has one credential',
      { atKey: true },
    )
  if (oauth.clientSecret !== undefined && oauth.clientId === undefined)
    source.report([...at, 'clientSecret'], 'found it without "clientId", expected both', { atKey: true })
}
