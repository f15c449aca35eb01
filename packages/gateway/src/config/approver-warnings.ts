import type { Caller } from '@toolgate/core'
import { mayApproveByDefault } from '@toolgate/core/call'
import type { GatewayConfig } from './config.ts'
import type { ConfigPath } from './problems.ts'

interface ApproverWarning {
  readonly code: 'approver_missing' | 'approver_idle'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/** The settings that decide whether calls ask, and who can answer. */
export type AskingConfig = Pick<GatewayConfig, 'callers' | 'policy' | 'apps'>

/**
 * Returns warnings about agents whose requests no console key can decide, one for each tenant, and about approvers who
 * can decide no requests.
 *
 * Returns no warnings for a policy without `ask`, as it creates no requests.
 */
export function findApproverWarnings({ callers, policy, apps = [] }: AskingConfig): readonly ApproverWarning[] {
  const asks = [...policy, ...apps.flatMap((app) => app.policy)].some(({ ask = [] }) => ask.length > 0)
  if (!asks) return []
  const agents = callers.filter((one) => one.for === 'mcp')
  const people = callers.filter((one) => one.for === 'console')
  const warned = new Set<string | undefined>()
  return callers.flatMap(({ for: use, caller }, i): readonly ApproverWarning[] => {
    const place = { at: ['callers', i], path: `callers[${i}]` }
    if (use === 'host') return []
    if (use === 'mcp') {
      if (warned.has(caller.tenant) || people.some((person) => mayDecide(person.caller, caller))) return []
      warned.add(caller.tenant)
      return [{ code: 'approver_missing', ...place, text: missing(caller) }]
    }
    const isApprover = (caller.roles ?? []).includes('approver')
    if (!isApprover || agents.some((agent) => mayDecide(caller, agent.caller))) return []
    return [{ code: 'approver_idle', ...place, text: idle(caller) }]
  })
}

function mayDecide(person: Caller, agent: Caller): boolean {
  return mayApproveByDefault(person, { user: agent.user, tenant: agent.tenant })
}

function missing({ user, tenant }: Caller): string {
  const wanted = tenant === undefined ? 'and no tenant' : `and the tenant "${tenant}"`
  return `no console key can decide the requests of ${named(user)}, ${inTenant(tenant)}: add a caller with "for: console", the role "approver" ${wanted}`
}

function idle({ user, tenant }: Caller): string {
  return `${named(user)} has the role "approver" ${inTenant(tenant)}, and no agent is ${inTenant(tenant)}: there is nothing that this key can decide`
}

function named(user: string | undefined): string {
  return user === undefined ? 'a caller without a user' : `"${user}"`
}

function inTenant(tenant: string | undefined): string {
  return tenant === undefined ? 'without a tenant' : `in the tenant "${tenant}"`
}
