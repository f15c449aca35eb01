import { type Caller, ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault, type ApiFaultCode } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route } from '../request.ts'

/** `POST /api/reload`: reads the file again, and never takes one from the request. With `dryRun` it only says what would change. */
export function reloadRoute({ reload }: ApiDeps): Route {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const isDryRun = (await readBody(request, ['dryRun'])).get('dryRun')
    if (isDryRun !== undefined && typeof isDryRun !== 'boolean')
      throw invalidBody('The field "dryRun" must be true or false.')
    const by = nameOperator(person, 'reload_forbidden', 'A reload')
    if (!reload) throw new ApiFault('reload_refused', 'This gateway has no file to read again.')
    try {
      return await reload({ by, through: 'api', isDryRun })
    } catch (error) {
      if (error instanceof ConfigFileError || error instanceof ConfigError)
        throw new ApiFault('config_invalid', error.message)
      throw error
    }
  }
}

/** Returns the user of a person who may do what concerns all tenants, which takes a person without one. */
export function nameOperator({ user, tenant, roles = [] }: Caller, code: ApiFaultCode, what: string): string {
  if (user !== undefined && tenant === undefined && roles.some((role) => role === 'operator' || role === 'approver'))
    return user
  throw new ApiFault(code, `${what} takes a person with the role "operator" or "approver" and no tenant.`)
}
