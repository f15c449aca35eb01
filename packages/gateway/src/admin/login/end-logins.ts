import type { ReportedLogout } from '../../auth/issued-to.ts'
import type { OidcConfig } from '../../config/oidc.ts'
import type { Heart } from '../../heart/heart.ts'
import type { LoginSessions } from '../http/access.ts'

/** Ends the logins and the tokens that an authorization server has ended, at every replica, and records it. */
export async function endLogins(
  logout: ReportedLogout,
  { server: { name, claims, users } }: OidcConfig,
  sessions: readonly LoginSessions[],
  { config, door, gate, stores, clock }: Heart,
): Promise<void> {
  const hasTokens = config.oauth?.issuers.some((one) => one.name === name) === true
  if (hasTokens) await door.tokenLogouts?.add(logout)
  const ended = (await Promise.all(sessions.map((one) => one.endIssued(logout)))).flat()
  const { sub, sid } = logout
  const named = sub !== undefined && claims.user === 'sub' ? (users.get(sub) ?? `${name}/${sub}`) : undefined
  const { user = named, tenant } = ended[0] ?? {}
  await stores.audit.write({
    event: 'login_ended',
    reason: 'issuer',
    detail: `${name} ended ${sid === undefined ? 'all sessions' : 'one session'}; logins that ended here: ${ended.length}`,
    ...(user !== undefined && { user_id: user }),
    ...(tenant !== undefined && { tenant }),
    wallMs: clock.wallMs(),
    policy_revision: gate.policyRevision,
    catalog_revision: gate.catalog.revision,
  })
}
