import type { Caller } from '@toolgate/core'
import { type AskingConfig, demandsOf, mayDecide, mayDecideByLogin } from './able-approvers.ts'
import type { ConfigPath } from './problems.ts'

interface ApproverWarning {
  readonly code: 'approver_missing' | 'approver_idle'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/**
 * Returns warnings about agents whose requests no console key and no login can decide, one for each tenant, and about approvers who
 * can decide no requests.
 *
 * Returns no warnings for a policy without `ask`, as it creates no requests.
 */
export function findApproverWarnings(config: AskingConfig): readonly ApproverWarning[] {
  const { callers, oidc } = config
  const demands = demandsOf(config)
  if (demands.length === 0) return []
  const agents = callers.filter((one) => one.for === 'mcp')
  const people = callers.filter((one) => one.for === 'console')
  const warned = new Set<string | undefined>()
  return callers.flatMap(({ for: use, caller }, i): readonly ApproverWarning[] => {
    const place = { at: ['callers', i], path: `callers[${i}]` }
    if (use === 'host') return []
    if (use === 'mcp') {
      const isAble = people.some((person) => mayDecide(person.caller, caller, demands))
      if (warned.has(caller.tenant) || isAble || mayDecideByLogin(oidc, caller, demands)) return []
      warned.add(caller.tenant)
      return [{ code: 'approver_missing', ...place, text: missing(caller) }]
    }
    const isApprover = (caller.roles ?? []).includes('approver')
    if (!isApprover || agents.some((agent) => mayDecide(caller, agent.caller, [...demands, {}]))) return []
    return [{ code: 'approver_idle', ...place, text: idle(caller) }]
  })
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
