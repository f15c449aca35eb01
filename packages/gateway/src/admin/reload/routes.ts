import { type Caller, ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { ApiDeps } from '../http/deps.ts'
import { ApiFault, type ApiFaultCode } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody, type Route } from '../http/request.ts'

/**
 * `POST /api/reload`: reads the file again, and never takes one from the request. With `dryRun` it only says what would
 * change; with `publish` all replicas run the file, if all of them can, or with `force`; with `preview` it applies what a dry
 * run has shown, or nothing.
 */
export function reloadRoute({ reload }: ApiDeps): Route {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, ['dryRun', 'publish', 'force', 'preview'])
    const isDryRun = readFlag(body, 'dryRun')
    const publishes = readFlag(body, 'publish')
    const isForced = readFlag(body, 'force')
    const preview = readText(body, 'preview')
    const by = nameOperator(person, 'reload_forbidden', 'A reload')
    if (!reload) throw new ApiFault('reload_refused', 'This gateway has no file to read again.')
    try {
      return await reload({ by, through: 'api', isDryRun, publishes, isForced, preview })
    } catch (error) {
      if (error instanceof ConfigFileError || error instanceof ConfigError)
        throw new ApiFault('config_invalid', error.message)
      throw error
    }
  }
}

function readFlag(body: ReadonlyMap<string, unknown>, field: string): boolean | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'boolean') return value
  throw invalidBody(`The field "${field}" must be true or false.`)
}

function readText(body: ReadonlyMap<string, unknown>, field: string): string | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'string') return value
  throw invalidBody(`The field "${field}" must be a string.`)
}

/** Returns the user of a person who may do what concerns all tenants, which takes a person without one. */
export function nameOperator({ user, tenant, roles = [] }: Caller, code: ApiFaultCode, what: string): string {
  if (user !== undefined && tenant === undefined && roles.some((role) => role === 'operator' || role === 'approver'))
    return user
  throw new ApiFault(code, `${what} takes a person with the role "operator" or "approver" and no tenant.`)
}
