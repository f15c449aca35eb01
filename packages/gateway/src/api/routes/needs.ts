import type { ApiDeps } from '../deps.ts'
import { parseQuery, text } from '../query.ts'
import type { NeedsBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/needs?app=`: what must work for the tools of an app, or of all groups, to be available. */
export function needsRoute(deps: ApiDeps): Route {
  return ({ query }) => {
    const { app } = parseQuery(query, { app: text })
    return { ...(app === undefined ? {} : { app }), needs: deps.needs?.(app) ?? [] } satisfies NeedsBody
  }
}
