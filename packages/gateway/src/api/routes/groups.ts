import type { ApiDeps } from '../deps.ts'
import { parseQuery } from '../query.ts'
import type { GroupsBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/groups`: every configured group as it is now, in the order of the configuration. */
export function groupsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { groups: deps.groups() } satisfies GroupsBody
  }
}
