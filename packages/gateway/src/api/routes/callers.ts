import type { NamedCaller } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { parseQuery } from '../query.ts'
import { maySee } from '../tenant.ts'
import type { CallersBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/callers`: whom `as` may name, and how many tools each sees. */
export function callersRoute(deps: ApiDeps, callers: ReadonlyMap<string, NamedCaller>): Route {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const rows = [...callers.values()]
      .filter(({ caller }) => maySee(person, caller))
      .map(async ({ name, for: kind, caller }) => ({
        user: name,
        roles: caller.roles ?? [],
        for: kind,
        visible: (await deps.view(caller)).size,
      }))
    return { callers: await Promise.all(rows) } satisfies CallersBody
  }
}
