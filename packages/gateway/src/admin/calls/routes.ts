import type { Answer } from '../../heart/route.ts'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import type { Caller } from '@toolgate/core'
import { CALL_FIELDS, type CallFilter } from './call-filter.ts'
import { exportCalls, findCalls } from './calls.ts'
import { CSV_HEAD, toCsv } from './csv.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { auditFor } from '../http/rule-text.ts'
import { oneOf, type Parameter, parseQuery, shortText, time, wholeNumber } from '../http/request.ts'
import { streamText } from '../http/stream.ts'
import type { CallOutcome, CallRow, CallsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'calls',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/calls', by: 'person', answer: callsRoute(heart) },
      { method: 'GET', path: '/api/calls/export', by: 'person', answer: callsExportRoute(heart) },
    ],
  }),
}

const WHOLE = wholeNumber(0, Number.MAX_SAFE_INTEGER)
const FIELDS = Object.fromEntries(Object.keys(CALL_FIELDS).map((name) => [name, shortText])) as Readonly<
  Record<keyof typeof CALL_FIELDS, Parameter<string>>
>
const FILTERS = {
  ...FIELDS,
  outcome: oneOf<CallOutcome>([...AUDIT_OUTCOMES, 'running']),
  since: time,
  until: time,
  text: shortText,
  slower: WHOLE,
}
const DEFAULT_LIMIT = 100
const FORMATS = ['jsonl', 'csv'] as const

/** `GET /api/calls`: one row for each call, newest first, with its records. */
export function callsRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return async ({ query, person }) => {
    const {
      limit = DEFAULT_LIMIT,
      before,
      ...filter
    } = parseQuery(query, {
      ...FILTERS,
      limit: wholeNumber(1, 500),
      before: WHOLE,
    })
    const own = withinTenant(filter, person)
    if (!own) return { calls: [] } satisfies CallsBody
    return (await findCalls(auditFor(person, stores.audit), { filter: own, before, limit })) satisfies CallsBody
  }
}

/** `GET /api/calls/export?format=`, with the same filters: all calls that match, in the order of their ends. */
export function callsExportRoute({ stores }: Pick<Heart, 'stores'>): Answer {
  return ({ query, person }) => {
    const { format = 'jsonl', ...filter } = parseQuery(query, { ...FILTERS, format: oneOf(FORMATS) })
    const own = withinTenant(filter, person)
    const calls = own ? exportCalls(auditFor(person, stores.audit), own) : noCalls()
    return format === 'csv'
      ? streamText(calls, toCsv, { head: CSV_HEAD, type: 'text/csv; charset=utf-8', name: 'calls.csv' })
      : streamText(calls, (call) => `${JSON.stringify(call)}\n`, {
          type: 'application/x-ndjson; charset=utf-8',
          name: 'calls.jsonl',
        })
  }
}

/** Adds a person's tenant to the filter; `undefined` if the filter asks for another tenant's calls. */
function withinTenant(filter: CallFilter, { tenant }: Caller): CallFilter | undefined {
  if (tenant === undefined) return filter
  return filter.tenant === undefined || filter.tenant === tenant ? { ...filter, tenant } : undefined
}

async function* noCalls(): AsyncGenerator<CallRow> {}
