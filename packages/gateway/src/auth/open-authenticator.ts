import { type Caller, ConfigError } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import type { IssuerRow } from '../model/rows.ts'
import type { OAuthConfig } from '../config/oauth.ts'
import { type Authenticator, createAuthenticator, type Credential, type CredentialSource } from './credential.ts'
import type { LogLine } from '../model/log-line.ts'
import type { ProtectedResources } from './oauth/protected-resource.ts'
import type { RefusedTokens } from './oauth/refusals.ts'

/** The authenticator of a gateway, and its OAuth parts. */
export interface OpenedAuthenticator {
  readonly authenticator: Authenticator
  /** Absent without OAuth. */
  readonly resources?: ProtectedResources
  /** The authorization servers, and whether their keys can be read. */
  issuers(): readonly IssuerRow[]
  /** Returns the callers of the tokens that are valid now. */
  signedIn(): readonly Caller[]
  /** The number of refused tokens, by issuer and reason. */
  refusedTokens(): readonly RefusedTokens[]
}

interface AuthenticatorOptions {
  readonly oauth: OAuthConfig | undefined
  readonly publicUrl: string | undefined
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly log: (line: LogLine) => void
  /** Called with the sender of each request. */
  readonly onFound: (credential: Credential) => void
}

/**
 * Returns the authenticator of keys, runs and, if OAuth is configured, tokens. Without OAuth, none of its code is
 * loaded.
 *
 * @throws {ConfigError} for OAuth without a public URL
 */
export async function openAuthenticator(
  own: readonly CredentialSource[],
  { oauth, publicUrl, clock, log, onFound }: AuthenticatorOptions,
): Promise<OpenedAuthenticator> {
  if (!oauth)
    return {
      authenticator: createAuthenticator(own, undefined, onFound),
      issuers: () => [],
      signedIn: () => [],
      refusedTokens: () => [],
    }
  if (publicUrl === undefined)
    throw new ConfigError('publicUrl', 'is needed with oauth: tokens are for a URL that clients know')
  const [{ Tokens }, { TokenRefusals }, { protectedResources }] = await Promise.all([
    import('./oauth/tokens.ts'),
    import('./oauth/refusals.ts'),
    import('./oauth/protected-resource.ts'),
  ])
  const refusals = new TokenRefusals(clock, log)
  const tokens = new Tokens(oauth, { clock, publicUrl, refusals })
  const resources = protectedResources(oauth, publicUrl)
  void tokens.start()
  return {
    authenticator: createAuthenticator([...own, tokens], resources, onFound),
    resources,
    signedIn: () => tokens.callers(),
    refusedTokens: () => refusals.list,
    issuers: () =>
      tokens.issuers.map(({ config: { name, issuer }, status, problem }) => ({
        name,
        issuer,
        status,
        ...(problem === undefined ? {} : { problem }),
      })),
  }
}
