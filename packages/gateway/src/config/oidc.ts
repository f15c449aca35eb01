import { z } from 'zod'
import { claim, type IssuerConfig, issuerFields, text } from './oauth.ts'

/** How people log in to the console, besides console keys. */
export interface OidcConfig {
  /** The OpenID provider at which people log in. */
  readonly server: IssuerConfig
  readonly clientId: string
  /** The secret of the client. Absent for a public client. */
  readonly clientSecret?: string
  readonly scopes: readonly string[]
  /** The roles for each value of the claim `claims.roles`. People without such a value cannot log in. */
  readonly roles: ReadonlyMap<string, readonly string[]>
}

export const oidcSchema = z
  .strictObject({
    issuer: issuerFields.issuer,
    issuerAliases: issuerFields.issuerAliases,
    name: issuerFields.name,
    clientId: text.describe(
      'The client that this console is registered as. Its redirect URI is <publicUrl>/api/oidc/callback.',
    ),
    clientSecret: text.describe('Prefer ${VAR}. Default: none, a public client.').exactOptional(),
    scopes: z.array(text).describe('Asked for beside "openid". Default: none.').exactOptional(),
    roles: z
      .record(text, z.array(text))
      .describe(
        'Who may log in: a value of the claim, and the roles that it brings, such as { tool-admins: [approver], staff: [] }.',
      ),
    claims: z
      .strictObject({
        user: claim.describe('The claim of the user. Default: sub.').exactOptional(),
        roles: claim.describe('The claim that "roles" is about. Default: groups.').exactOptional(),
        tenant: claim.describe('The claim of the tenant. Nobody without it may log in.').exactOptional(),
      })
      .describe('Which claims of the ID token make the person.')
      .exactOptional(),
    tenant: issuerFields.tenant,
    users: issuerFields.users,
    algorithms: issuerFields.algorithms,
    clockSkewMs: issuerFields.clockSkewMs,
  })
  .describe('Lets people log in to the console with OpenID Connect (code flow with PKCE), beside console keys.')
