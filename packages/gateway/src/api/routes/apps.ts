import type { ApiDeps } from '../deps.ts'
import { parseQuery } from '../query.ts'
import type { AppsBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/apps`: every configured app as it is now, in the order of the configuration. */
export function appsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { apps: deps.apps?.() ?? [] } satisfies AppsBody
  }
}
