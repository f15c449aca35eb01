import type { Caller } from '@toolgate/core'
import { ApiFault, type ApiFaultCode } from '../../model/faults.ts'

type OperatingCaller = Caller & { readonly user: string }

/** Whether a person operates the gateway for all tenants. Only a person without a tenant does. */
export function isOperator(person: Caller): person is OperatingCaller {
  const { user, tenant, roles = [] } = person
  return user !== undefined && tenant === undefined && roles.some((role) => role === 'operator' || role === 'approver')
}

/** Returns the user of a person who may act for all tenants. @throws {ApiFault} with the code */
export function nameOperator(person: Caller, code: ApiFaultCode, what: string): string {
  if (isOperator(person)) return person.user
  throw new ApiFault(code, `${what} takes a person with the role "operator" or "approver" and no tenant.`)
}

const ROLES: ReadonlySet<string> = new Set(['approver', 'operator'])

/** Whether a person may see the logs of servers, which may mention users of all tenants. */
export function maySeeLogs({ tenant, roles = [] }: Caller): boolean {
  return tenant === undefined && roles.some((role) => ROLES.has(role))
}
