import type { GatewayConfig } from './config.ts'
import type { ConfigPath } from './problems.ts'

interface PersonWarning {
  readonly code: 'person_split'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

const ENTRA = /^(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn|sts\.windows\.net)$/
const OKTA = /\.(?:okta|oktapreview|okta-emea)\.com$/

/**
 * Returns a warning for each issuer whose tokens name a person otherwise than its logins do. That person would be two
 * users, who could approve each other's calls.
 */
export function findPersonWarnings({ oauth, oidc }: Pick<GatewayConfig, 'oauth' | 'oidc'>): readonly PersonWarning[] {
  if (!oidc) return []
  const { name, claims } = oidc.server
  return (oauth?.issuers ?? []).flatMap((issuer, i) => {
    if (issuer.name !== name) return []
    const [ofTokens, ofLogins] = [issuer.claims.user, claims.user]
    const { hostname } = new URL(issuer.issuer)
    const says = (text: string): readonly PersonWarning[] => [
      { code: 'person_split', at: ['oauth', 'issuers', i], path: `oauth.issuers[${i}].claims.user`, text },
    ]
    if (ENTRA.test(hostname) && [ofTokens, ofLogins].includes('sub'))
      return says(
        'the "sub" of Entra ID differs between applications, so a person is one user in tokens and another in the console, and can approve their own calls: write "claims: { user: oid }" here and in "oidc"',
      )
    if (OKTA.test(hostname) && ofTokens === 'sub' && ofLogins === 'sub')
      return says(
        'the "sub" of Okta is the name of the login in tokens and the id of the person in logins, so a person is two users, and can approve their own calls: write "claims: { user: uid }" here',
      )
    return []
  })
}
