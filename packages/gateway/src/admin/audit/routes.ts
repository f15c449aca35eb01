import { basename } from 'node:path'
import type { AuditExportQuery } from '@toolgate/core/audit'
import { AUDIT_EVENTS, AUDIT_OUTCOMES } from '@toolgate/core/words'
import type { ApiDeps } from '../http/deps.ts'
import {
  invalidQuery,
  oneOf,
  parseQuery,
  readBody,
  required,
  shortText,
  time,
  wholeNumber,
  type Route,
} from '../http/request.ts'
import { countFor, exportFor, queryFor } from '../http/callers.ts'
import { streamText } from '../http/stream.ts'
import type { AuditBody, AuditCountsBody, AuditEvidenceBody, AuditRotationBody } from '../../model/rows.ts'
import { nameOperator } from '../reload/routes.ts'

const seq = wholeNumber(0, Number.MAX_SAFE_INTEGER)
const FILTERS = {
  tool: shortText,
  user: shortText,
  session: shortText,
  event: oneOf(AUDIT_EVENTS),
  outcome: oneOf(AUDIT_OUTCOMES),
  call: shortText,
  run: shortText,
  since: time,
  until: time,
}
const RANGE = { ...FILTERS, before: seq, after: seq }
const PARAMETERS = { limit: wholeNumber(1, 1000), ...RANGE }
const MAX_BUCKETS = 500
const COUNT_PARAMETERS = { ...FILTERS, bucket: wholeNumber(1, Number.MAX_SAFE_INTEGER) }

/** `GET /api/audit?limit=&tool=&user=&session=&event=&outcome=&call=&run=&since=&until=&before=&after=`: newest first. */
export function auditRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const { limit, ...filter } = parseQuery(query, PARAMETERS)
    const records = await queryFor(person, deps.audit, {
      ...(limit === undefined ? {} : { limit }),
      ...toQuery(filter),
    })
    return { records } satisfies AuditBody
  }
}

/** Says that an export is of one tenant. */
const PART_HEADER = 'toolgate-part'

/** `GET /api/audit/export`, with the same filters: all matches, oldest first, streamed as JSON lines. */
export function auditExportRoute(deps: ApiDeps): Route {
  return ({ query, person }) => {
    const records = exportFor(person, deps.audit, toQuery(parseQuery(query, RANGE)))
    return streamText(records, (record) => `${JSON.stringify(record)}\n`, {
      type: 'application/x-ndjson; charset=utf-8',
      name: 'audit.jsonl',
      // Their numbers have gaps, where the records of others are.
      ...(person.tenant !== undefined && { headers: { [PART_HEADER]: 'tenant' } }),
    })
  }
}

/** `GET /api/audit/counts?since=&until=&bucket=` with the filters: how many attempts ended in each way, in buckets of time. */
export function auditCountsRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const { bucket, ...filter } = parseQuery(query, COUNT_PARAMETERS)
    const since = required('since', filter.since)
    const until = required('until', filter.until)
    const bucketMs = required('bucket', bucket)
    if (until <= since) throw invalidQuery('until', 'must be later than "since"')
    const leastMs = Math.ceil((until - since) / MAX_BUCKETS)
    if (bucketMs < leastMs)
      throw invalidQuery('bucket', `must be at least ${leastMs}: at most ${MAX_BUCKETS} buckets are counted`)
    const counts = await countFor(person, deps.audit, { ...filter, since, until, bucketMs })
    return counts satisfies AuditCountsBody
  }
}

/** `GET /api/audit/evidence`: the checkpoints of the audit, and their problems. */
export function auditEvidenceRoute(deps: ApiDeps): Route {
  return ({ query, person }) => {
    parseQuery(query, {})
    const evidence: AuditEvidenceBody = deps.evidence?.() ?? { store: 'memory', problems: [] }
    return person.tenant === undefined ? evidence : withoutPaths(evidence)
  }
}

/** `POST /api/audit/rotate`: closes the file of JSON lines and begins another. */
export function auditRotateRoute({ audit }: ApiDeps): Route {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    await readBody(request, [])
    nameOperator(person, 'audit_forbidden', 'A rotation')
    const closed = await audit.rotate?.()
    return { closed: closed === undefined ? null : basename(closed) } satisfies AuditRotationBody
  }
}

/** Only people without a tenant see file paths. */
function withoutPaths({ store, checkpoints, problems }: AuditEvidenceBody): AuditEvidenceBody {
  const { path: _path, ...signed } = checkpoints ?? { signedSeq: 0 }
  return {
    store,
    ...(checkpoints === undefined ? {} : { checkpoints: signed }),
    problems: problems.map(({ code }) => ({
      code,
      message: 'The evidence for the audit has a problem. The people who run this gateway can see which.',
    })),
  }
}

type Filters = Omit<AuditExportQuery, 'beforeSeq' | 'afterSeq'> & { readonly before?: number; readonly after?: number }

function toQuery({ before, after, ...filter }: Filters): AuditExportQuery {
  return {
    ...filter,
    ...(before === undefined ? {} : { beforeSeq: before }),
    ...(after === undefined ? {} : { afterSeq: after }),
  }
}
