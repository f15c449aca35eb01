import type { Answer } from '../../heart/route.ts'
import { basename } from 'node:path'
import type { AuditExportQuery } from '@toolgate/core/audit'
import { AUDIT_EVENTS, AUDIT_OUTCOMES } from '@toolgate/core/words'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { invalidQuery, oneOf, parseQuery, readBody, required, shortText, time, wholeNumber } from '../http/request.ts'
import { countFor, exportFor, queryFor } from '../http/callers.ts'
import { streamText } from '../http/stream.ts'
import type { AuditBody, AuditCountsBody, AuditEvidenceBody, AuditRotationBody } from '../../model/rows.ts'
import { nameOperator } from '../http/may.ts'
import { evidenceOf } from './start.ts'

export const room: Room = {
  name: 'audit',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/audit', by: 'person', answer: auditRoute(heart) },
      { method: 'GET', path: '/api/audit/counts', by: 'person', answer: auditCountsRoute(heart) },
      { method: 'GET', path: '/api/audit/evidence', by: 'person', answer: auditEvidenceRoute(heart) },
      { method: 'POST', path: '/api/audit/rotate', by: 'person', answer: auditRotateRoute(heart) },
      { method: 'GET', path: '/api/audit/export', by: 'person', answer: auditExportRoute(heart) },
    ],
  }),
}

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
function auditRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return async ({ query, person }) => {
    const { limit, ...filter } = parseQuery(query, PARAMETERS)
    const records = await queryFor(person, stores.audit, {
      ...(limit === undefined ? {} : { limit }),
      ...toQuery(filter),
    })
    return { records } satisfies AuditBody
  }
}

/** The header that marks an export of only one tenant. */
const PART_HEADER = 'toolgate-part'

/** `GET /api/audit/export`, with the same filters: all matches, oldest first, streamed as JSON lines. */
function auditExportRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return ({ query, person }) => {
    const records = exportFor(person, stores.audit, toQuery(parseQuery(query, RANGE)))
    return streamText(records, (record) => `${JSON.stringify(record)}\n`, {
      type: 'application/x-ndjson; charset=utf-8',
      name: 'audit.jsonl',
      // Their sequence numbers have gaps, because records of other tenants are left out.
      ...(person.tenant !== undefined && { headers: { [PART_HEADER]: 'tenant' } }),
    })
  }
}

/**
 * `GET /api/audit/counts?since=&until=&bucket=` with the filters: the number of attempts with each outcome, in buckets
 * of time.
 */
function auditCountsRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return async ({ query, person }) => {
    const { bucket, ...filter } = parseQuery(query, COUNT_PARAMETERS)
    const since = required('since', filter.since)
    const until = required('until', filter.until)
    const bucketMs = required('bucket', bucket)
    if (until <= since) throw invalidQuery('until', 'must be later than "since"')
    const leastMs = Math.ceil((until - since) / MAX_BUCKETS)
    if (bucketMs < leastMs)
      throw invalidQuery('bucket', `must be at least ${leastMs}: at most ${MAX_BUCKETS} buckets are counted`)
    const counts = await countFor(person, stores.audit, { ...filter, since, until, bucketMs })
    return counts satisfies AuditCountsBody
  }
}

/** `GET /api/audit/evidence`: the checkpoints of the audit, and their problems. */
function auditEvidenceRoute(heart: Pick<Heart, 'config' | 'stores'>): Answer {
  return ({ query, person }) => {
    parseQuery(query, {})
    const evidence = evidenceOf(heart)
    return person.tenant === undefined ? evidence : withoutPaths(evidence)
  }
}

/** `POST /api/audit/rotate`: closes the current file of JSON lines and starts another. */
function auditRotateRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    await readBody(request, [])
    nameOperator(person, 'audit_forbidden', 'A rotation')
    const closed = await stores.audit.rotate?.()
    return { closed: closed === undefined ? null : basename(closed) } satisfies AuditRotationBody
  }
}

/** Removes file paths, which only people without a tenant may see. */
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
