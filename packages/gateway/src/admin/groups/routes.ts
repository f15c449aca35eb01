import type { ApiDeps } from '../http/deps.ts'
import { parseQuery, type Route, shortText } from '../http/request.ts'
import type { AppsBody, GroupsBody, NeedsBody, WarningsBody } from '../../model/rows.ts'

/** `GET /api/groups`: every configured group in its current state, in the order of the configuration. */
export function groupsRoute(deps: ApiDeps): Route {
  return async ({ query }) => {
    parseQuery(query, {})
    await deps.refreshGroups?.()
    return { groups: deps.groups() } satisfies GroupsBody
  }
}

/** `GET /api/apps`: every configured app in its current state, in the order of the configuration. */
export function appsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { apps: deps.apps?.() ?? [] } satisfies AppsBody
  }
}

/** `GET /api/needs?app=`: the dependencies of an app's tools, or of all groups. */
export function needsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    const { app } = parseQuery(query, { app: shortText })
    return { ...(app === undefined ? {} : { app }), needs: deps.needs?.(app) ?? [] } satisfies NeedsBody
  }
}

/** `GET /api/warnings`: likely mistakes in the configuration, as of now. None for a person of a tenant: they name those of all. */
export function warningsRoute(deps: ApiDeps): Route {
  return ({ query, person }) => {
    parseQuery(query, {})
    return { warnings: person.tenant === undefined ? (deps.warnings?.() ?? []) : [] } satisfies WarningsBody
  }
}
