import { type Caller, ConfigError } from '@toolgate/core'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { IssuerRow } from '../model/rows.ts'
import type { OAuthConfig } from '../config/oauth.ts'
import type { NamingIssuer } from '../config/other-names.ts'
import { type Authenticator, createAuthenticator, type Credential, type CredentialSource } from './credential.ts'
import type { LogLine } from '../model/log-line.ts'
import type { ReportedLogout } from './issued-to.ts'
import type { ProtectedResources } from './oauth/protected-resource.ts'
import type { RefusedTokens } from './oauth/refusals.ts'

/** The authenticator of a gateway, and its OAuth parts. */
export interface OpenedAuthenticator {
  readonly authenticator: Authenticator
  /** Absent without OAuth. */
  readonly resources?: ProtectedResources
  /** The authorization servers, and whether their keys can be read. */
  issuers(): readonly IssuerRow[]
  /** The number of refused tokens, by issuer and reason. */
  refusedTokens(): readonly RefusedTokens[]
  /** The logouts that issuers have reported, and that end tokens. Absent without OAuth. */
  readonly tokenLogouts?: TokenLogouts
}

/** Ends the tokens of sessions that their issuer has ended. */
interface TokenLogouts {
  /** Reads the logouts from the store and follows its changes. `end` gets the callers that have no other token. */
  open(state: StateStore, end: (callers: readonly Caller[]) => void): Promise<void>
  /** Resolves when every replica refuses the tokens. */
  add(logout: ReportedLogout): Promise<void>
  close(): void
}

interface AuthenticatorOptions {
  readonly oauth: OAuthConfig | undefined
  /** All issuers that name people. Default: those of `oauth`. */
  readonly naming?: readonly NamingIssuer[]
  readonly publicUrl: string | undefined
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly log: (line: LogLine) => void
  readonly onFault: (error: unknown) => void
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
  { oauth, naming, publicUrl, clock, log, onFault, onFound }: AuthenticatorOptions,
): Promise<OpenedAuthenticator> {
  if (!oauth)
    return {
      authenticator: createAuthenticator(own, undefined, onFound),
      issuers: () => [],
      refusedTokens: () => [],
    }
  if (publicUrl === undefined)
    throw new ConfigError('publicUrl', 'is needed with oauth: tokens are for a URL that clients know')
  const [{ Tokens }, { Logouts }, { TokenRefusals }, { protectedResources }] = await Promise.all([
    import('./oauth/tokens.ts'),
    import('./oauth/logouts.ts'),
    import('./oauth/refusals.ts'),
    import('./oauth/protected-resource.ts'),
  ])
  const refusals = new TokenRefusals(clock, log)
  const logouts = new Logouts({ clock, onFault })
  const tokens = new Tokens(oauth, { clock, publicUrl, refusals, logouts, naming })
  const resources = protectedResources(oauth, publicUrl)
  void tokens.start()
  return {
    authenticator: createAuthenticator([...own, tokens], resources, onFound),
    resources,
    refusedTokens: () => refusals.list,
    tokenLogouts: {
      open: (state, end) => logouts.open(state, () => end(tokens.dropLoggedOut())),
      add: (logout) => logouts.add(logout),
      close: () => logouts.close(),
    },
    issuers: () =>
      tokens.issuers.map(({ config: { name, issuer }, status, problem, reportsLogouts }) => ({
        name,
        issuer,
        status,
        ...(reportsLogouts ? { reportsLogouts } : {}),
        ...(problem === undefined ? {} : { problem }),
      })),
  }
}
