import { type Caller, ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { invalidBody, parseQuery, readBody, type Route } from '../request.ts'

/** `POST /api/reload`: reads the file again, and never takes one from the request. With `dryRun` it only says what would change. */
export function reloadRoute({ reload }: ApiDeps): Route {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const isDryRun = (await readBody(request, ['dryRun'])).get('dryRun')
    if (isDryRun !== undefined && typeof isDryRun !== 'boolean')
      throw invalidBody('The field "dryRun" must be true or false.')
    const by = nameOperator(person)
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

/** All tenants share the configuration, so a reload takes a person without a tenant. */
function nameOperator({ user, tenant, roles = [] }: Caller): string {
  if (user !== undefined && tenant === undefined && roles.some((role) => role === 'operator' || role === 'approver'))
    return user
  throw new ApiFault(
    'reload_forbidden',
    'A reload takes a person with the role "operator" or "approver" and no tenant.',
  )
}
