import { ToolgateError } from '../errors.ts'
import {
  AUDIT_EVENTS,
  AUDIT_OUTCOMES,
  type AuditEvent,
  type AuditFilter,
  type AuditOutcome,
  type AuditQuery,
  type AuditRecord,
} from '../ports.ts'
import { checkShape, shapeOf } from '../util/shape.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
const QUERY = shapeOf<AuditQuery>(
  {
    tool: true,
    user: true,
    session: true,
    event: true,
    outcome: true,
    call: true,
    since: true,
    until: true,
    limit: true,
    beforeSeq: true,
    afterSeq: true,
  },
  'field',
)

/** A query that was checked, with nothing left to default. */
export type CheckedAuditQuery = AuditQuery & { readonly limit: number }

/**
 * Checks a query and fills in its limit. Every reader answers only what this gives.
 *
 * @throws {ToolgateError} `query_invalid`, naming the field
 */
export function checkAuditQuery(query: AuditQuery): CheckedAuditQuery {
  checkShape('query', query, QUERY)
  const { limit = DEFAULT_LIMIT, beforeSeq, afterSeq, event, outcome, since, until } = query
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new ToolgateError('query_invalid', `limit must be a whole number from 1 to ${MAX_LIMIT}`)
  checkSeq('beforeSeq', beforeSeq)
  checkSeq('afterSeq', afterSeq)
  checkTime('since', since)
  checkTime('until', until)
  checkWord('event', event, AUDIT_EVENTS)
  checkWord('outcome', outcome, AUDIT_OUTCOMES)
  return { ...query, limit }
}

/** Tells whether a record is one that a query asks for, its limit aside. */
export function matchesAuditQuery(record: AuditRecord, query: Omit<AuditQuery, 'limit'>): boolean {
  return (
    (query.tool === undefined || record.tool === query.tool) &&
    (query.user === undefined || record.user_id === query.user) &&
    (query.session === undefined || record.session_id === query.session) &&
    (query.call === undefined || record.tool_call_id === query.call) &&
    (query.event === undefined || record.event === query.event) &&
    (query.outcome === undefined || outcomeOfRecord(record) === query.outcome) &&
    (query.beforeSeq === undefined || record.seq < query.beforeSeq) &&
    (query.afterSeq === undefined || record.seq > query.afterSeq) &&
    matchesTime(record, query)
  )
}

const OUTCOMES: ReadonlyMap<AuditEvent, AuditOutcome> = new Map<AuditEvent, AuditOutcome>([
  ['tool_result', 'done'],
  ['tool_blocked', 'refused'],
  ['tool_rate_limited', 'limited'],
  ['tool_approval_required', 'waiting'],
  ['tool_abandoned', 'abandoned'],
])

/** Gives how the attempt ended that a record ends; `undefined` for a record that ends none. */
export function outcomeOfRecord({ event, error, is_error: isError }: AuditRecord): AuditOutcome | undefined {
  return event === 'tool_result' && (error !== undefined || isError === true) ? 'failed' : OUTCOMES.get(event)
}

/** Gives the event of the records that end so. */
export function eventOfOutcome(outcome: AuditOutcome): AuditEvent {
  const found = [...OUTCOMES].find(([, ending]) => ending === outcome)
  return found?.[0] ?? 'tool_result'
}

function matchesTime({ ts }: AuditRecord, { since, until }: AuditFilter): boolean {
  if (since === undefined && until === undefined) return true
  const ms = Date.parse(ts)
  return (since === undefined || ms >= since) && (until === undefined || ms < until)
}

function checkSeq(name: string, seq: number | undefined): void {
  if (seq === undefined || (Number.isSafeInteger(seq) && seq >= 0)) return
  throw new ToolgateError('query_invalid', `${name} must be a whole number, 0 or greater`)
}

function checkTime(name: string, ms: number | undefined): void {
  if (ms === undefined || Number.isFinite(ms)) return
  throw new ToolgateError('query_invalid', `${name} must be a time in milliseconds`)
}

function checkWord(name: string, word: string | undefined, words: readonly string[]): void {
  if (word === undefined || words.includes(word)) return
  throw new ToolgateError('query_invalid', `${name} must be one of ${words.join(', ')}`)
}
