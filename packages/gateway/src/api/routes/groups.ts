import type { ApiDeps } from '../deps.ts'
import { parseQuery, type Route, shortText } from '../request.ts'
import type { AppsBody, GroupsBody, NeedsBody, WarningsBody } from '../wire.ts'

/** `GET /api/groups`: every configured group as it is now, in the order of the configuration. */
export function groupsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { groups: deps.groups() } satisfies GroupsBody
  }
}

/** `GET /api/apps`: every configured app as it is now, in the order of the configuration. */
export function appsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { apps: deps.apps?.() ?? [] } satisfies AppsBody
  }
}

/** `GET /api/needs?app=`: what must work for the tools of an app, or of all groups, to be available. */
export function needsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    const { app } = parseQuery(query, { app: shortText })
    return { ...(app === undefined ? {} : { app }), needs: deps.needs?.(app) ?? [] } satisfies NeedsBody
  }
}

/** `GET /api/warnings`: what is allowed and probably not meant, as it is now. */
export function warningsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { warnings: deps.warnings?.() ?? [] } satisfies WarningsBody
  }
}
