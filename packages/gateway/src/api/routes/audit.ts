import { AUDIT_EVENTS } from '@toolgate/core'
import type { ApiDeps } from '../deps.ts'
import { oneOf, parseQuery, text, wholeNumber } from '../query.ts'
import { queryFor } from '../tenant.ts'
import type { AuditBody } from '../wire.ts'
import type { Route } from './route.ts'

const seq = wholeNumber(0, Number.MAX_SAFE_INTEGER)
const PARAMETERS = {
  limit: wholeNumber(1, 1000),
  tool: text,
  user: text,
  event: oneOf(AUDIT_EVENTS),
  before: seq,
  after: seq,
}

/** `GET /api/audit?limit=&tool=&user=&event=&before=&after=`: what was attempted, newest first. */
export function auditRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const { before, after, ...filter } = parseQuery(query, PARAMETERS)
    const records = await queryFor(person, deps.audit, {
      ...filter,
      ...(before === undefined ? {} : { beforeSeq: before }),
      ...(after === undefined ? {} : { afterSeq: after }),
    })
    return { records } satisfies AuditBody
  }
}
