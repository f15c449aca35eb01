import { checkShape, shapeOf, ToolgateError } from '@toolgate/values'
import {
  AUDIT_EVENTS,
  AUDIT_OUTCOMES,
  type AuditCountQuery,
  type AuditCounts,
  type AuditEvent,
  type AuditExportQuery,
  type AuditFilter,
  type AuditOutcome,
  type AuditQuery,
  type AuditRecord,
} from '../ports/ports.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
const MAX_BUCKETS = 500
const FILTER = {
  tool: true,
  user: true,
  session: true,
  tenant: true,
  event: true,
  outcome: true,
  call: true,
  run: true,
  since: true,
  until: true,
} as const
const QUERY = shapeOf<AuditQuery>({ ...FILTER, limit: true, beforeSeq: true, afterSeq: true }, 'field')
const COUNT_QUERY = shapeOf<AuditCountQuery>({ ...FILTER, bucketMs: true }, 'field')

/** A query that was checked, with nothing left to default. */
export type CheckedAuditQuery = AuditQuery & { readonly limit: number }

/**
 * Checks a query and fills in its limit. Every reader uses only checked queries.
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

/**
 * Checks a query for counts and returns it.
 *
 * @throws {ToolgateError} `query_invalid`, naming the field
 */
export function checkCountQuery(query: AuditCountQuery): AuditCountQuery {
  checkShape('query', query, COUNT_QUERY)
  const { since, until, bucketMs, event, outcome } = query
  for (const [name, ms] of Object.entries({ since, until, bucketMs }))
    if (!Number.isSafeInteger(ms))
      throw new ToolgateError('query_invalid', `${name} must be a whole number of milliseconds`)
  if (until <= since) throw new ToolgateError('query_invalid', 'until must be later than since')
  if (bucketMs < 1 || bucketCount(query) > MAX_BUCKETS)
    throw new ToolgateError(
      'query_invalid',
      `bucketMs must be at least ${Math.ceil((until - since) / MAX_BUCKETS)}: more than ${MAX_BUCKETS} buckets are not counted`,
    )
  checkWord('event', event, AUDIT_EVENTS)
  checkWord('outcome', outcome, AUDIT_OUTCOMES)
  return query
}

/** Returns how many buckets a query for counts has. */
function bucketCount({ since, until, bucketMs }: AuditCountQuery): number {
  return Math.ceil((until - since) / bucketMs)
}

/** Returns whether a record matches a query, ignoring its limit. */
export function matchesAuditQuery(record: AuditRecord, query: AuditExportQuery): boolean {
  return (
    (query.tool === undefined || record.tool === query.tool) &&
    (query.user === undefined || record.user_id === query.user) &&
    (query.session === undefined || record.session_id === query.session) &&
    (query.tenant === undefined || record.tenant === query.tenant) &&
    (query.call === undefined || record.tool_call_id === query.call) &&
    (query.run === undefined || record.run_id === query.run) &&
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
  ['tool_input_required', 'input_required'],
  ['tool_abandoned', 'abandoned'],
])

/** Returns the outcome of the attempt that a record ends; `undefined` if it ends none. */
export function outcomeOfRecord({
  event,
  error,
  is_error: isError,
}: Pick<AuditRecord, 'event' | 'error' | 'is_error'>): AuditOutcome | undefined {
  return event === 'tool_result' && (error !== undefined || isError === true) ? 'failed' : OUTCOMES.get(event)
}

/** Returns the event of records with an outcome. */
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

/** Adds up the counts of a query, bucket by bucket. */
export interface OutcomeTally {
  /** Counts `count` records of one time, which is from `since` to before `until`. */
  add(atMs: number, outcome: AuditOutcome, count?: number): void
  counts(newestSeq: number): AuditCounts
}

/** Returns a tally with all counts at 0. `query` has passed `checkCountQuery`. */
export function createOutcomeTally(query: AuditCountQuery): OutcomeTally {
  const { since, bucketMs } = query
  const buckets = Array.from({ length: bucketCount(query) }, noOutcomes)
  return {
    add(atMs, outcome, count = 1) {
      const bucket = buckets[Math.floor((atMs - since) / bucketMs)]
      if (bucket) bucket[outcome] += count
    },
    counts: (newestSeq) => ({ since, bucketMs, buckets, newestSeq }),
  }
}

function noOutcomes(): Record<AuditOutcome, number> {
  return { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 }
}
