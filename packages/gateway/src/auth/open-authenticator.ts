import { ConfigError } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import type { IssuerRow } from '../api/wire.ts'
import type { OAuthConfig } from '../config/oauth.ts'
import { type Authenticator, createAuthenticator, type CredentialSource } from './credential.ts'
import type { ProtectedResources } from './oauth/protected-resource.ts'

/** The authenticator of a gateway, with what OAuth adds to it. */
export interface OpenedAuthenticator {
  readonly authenticator: Authenticator
  /** Absent without OAuth. */
  readonly resources?: ProtectedResources
  /** The authorization servers, and whether their keys can be read. */
  issuers(): readonly IssuerRow[]
}

export interface AuthenticatorOptions {
  readonly oauth: OAuthConfig | undefined
  readonly publicUrl: string | undefined
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
}

/**
 * Returns the authenticator of keys, and of tokens where OAuth is configured. Without it, nothing of it is loaded.
 *
 * @throws {ConfigError} for OAuth without a URL that clients know
 */
export async function openAuthenticator(
  keys: CredentialSource,
  { oauth, publicUrl, clock }: AuthenticatorOptions,
): Promise<OpenedAuthenticator> {
  if (!oauth) return { authenticator: createAuthenticator([keys]), issuers: () => [] }
  if (publicUrl === undefined)
    throw new ConfigError('publicUrl', 'is needed with oauth: tokens are for a URL that clients know')
  const [{ Tokens }, { protectedResources }] = await Promise.all([
    import('./oauth/tokens.ts'),
    import('./oauth/protected-resource.ts'),
  ])
  const tokens = new Tokens(oauth, { clock, publicUrl })
  const resources = protectedResources(oauth, publicUrl)
  void tokens.start()
  return {
    authenticator: createAuthenticator([keys, tokens], resources),
    resources,
    issuers: () =>
      tokens.issuers.map(({ config: { name, issuer }, status, problem }) => ({
        name,
        issuer,
        status,
        ...(problem === undefined ? {} : { problem }),
      })),
  }
}
