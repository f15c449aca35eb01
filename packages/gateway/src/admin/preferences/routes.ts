import { type Caller, ConfigError } from '@toolgate/core'
import type { Preferences } from '@toolgate/core/internal'
import { invalidBody, readBody, parseQuery, shortText, type Route } from '../http/request.ts'
import { findCaller, isApprover, type NamedCallers } from '../http/callers.ts'
import type { ApiDeps } from '../http/deps.ts'
import { ApiFault } from '../../model/faults.ts'
import type { PreferencesBody } from '../../model/rows.ts'

const FIELDS = ['groups', 'tools']

/** `GET /api/preferences`, or `?as=`: what the person, or a configured caller, has switched off. */
export function preferencesRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return ({ query, person }) => {
    const { as } = parseQuery(query, { as: shortText })
    const whose = as === undefined ? person : findCaller(callers, { as }, person).caller
    return toBody(deps.preferences?.get(whose))
  }
}

/** `PUT /api/preferences`: replaces them. Those of another caller, with `?as=`, take the role `approver`. */
export function setPreferencesRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person, request }) => {
    const { as } = parseQuery(query, { as: shortText })
    const body = await readBody(request, FIELDS)
    const whose = as === undefined ? person : findCaller(callers, { as }, person).caller
    if (!isSame(whose, person) && !isApprover(person))
      throw new ApiFault(
        'preferences_forbidden',
        'Changing the preferences of another caller takes the role "approver".',
      )
    if (!deps.preferences) throw new ApiFault('preferences_forbidden', 'Nothing can be switched off here.')
    try {
      return toBody(await deps.preferences.set(whose, Object.fromEntries(body) as unknown as Preferences))
    } catch (error) {
      if (error instanceof ConfigError) throw invalidBody(error.message)
      throw error
    }
  }
}

function isSame(a: Caller, b: Caller): boolean {
  return a.user === b.user && a.tenant === b.tenant
}

function toBody({ groups, tools }: Preferences = { groups: [], tools: [] }): PreferencesBody {
  return { groups, tools }
}
