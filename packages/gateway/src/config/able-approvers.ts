import type { Caller } from '@toolgate/core'
import { mayApproveByDefault } from '@toolgate/core/call'
import type { ApproverRule } from '@toolgate/core/stores'
import type { GatewayConfig } from './config.ts'
import type { OidcConfig } from './oidc.ts'

/** The settings that decide whether calls ask, and who can answer. */
export type AskingConfig = Pick<GatewayConfig, 'callers' | 'policy' | 'apps' | 'oidc'>

type AskClause = NonNullable<GatewayConfig['policy'][number]['ask']>[number]

/** Returns what a clause demands of roles. */
export function rolesOfClause(clause: AskClause): ApproverRule['roles'] {
  const approvers = typeof clause === 'object' ? clause.approvers : undefined
  return typeof approvers === 'object' ? approvers : undefined
}

/** Returns the clauses that ask, once for each demand of roles. */
export function demandsOf({ policy, apps = [] }: AskingConfig): readonly Pick<ApproverRule, 'roles'>[] {
  const asks = [...policy, ...apps.flatMap((app) => app.policy)].flatMap(({ ask = [] }) => ask)
  const roles = new Map(asks.map((clause) => [JSON.stringify(rolesOfClause(clause) ?? null), rolesOfClause(clause)]))
  return [...roles.values()].map((one) => (one === undefined ? {} : { roles: one }))
}

/** Whether a person may decide the calls of an agent that one of the clauses asks about. */
export function mayDecide(person: Caller, { user, tenant }: Caller, demands: ReturnType<typeof demandsOf>): boolean {
  return demands.some((approver) => mayApproveByDefault(person, { user, tenant, approver }))
}

/** Returns the roles that a login with OpenID Connect can bring. */
export function rolesOfLogin(oidc: OidcConfig | undefined): readonly string[] {
  return oidc ? [...new Set([...oidc.roles.values()].flat())] : []
}

/** Whether somebody who signs in may decide the calls of an agent. Which people there are is not known. */
export function mayDecideByLogin(
  oidc: OidcConfig | undefined,
  agent: Caller,
  demands: ReturnType<typeof demandsOf>,
): boolean {
  if (!oidc) return false
  const { tenant, claims } = oidc.server
  const person = { tenant: claims.tenant === undefined ? tenant : agent.tenant, roles: rolesOfLogin(oidc) }
  return mayDecide(person, agent, demands)
}
