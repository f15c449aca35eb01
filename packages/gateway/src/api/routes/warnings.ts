import type { ApiDeps } from '../deps.ts'
import { parseQuery } from '../query.ts'
import type { WarningsBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/warnings`: what is allowed and probably not meant, as it is now. */
export function warningsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    parseQuery(query, {})
    return { warnings: deps.warnings?.() ?? [] } satisfies WarningsBody
  }
}
