import { ToolgateError } from '../errors.ts'
import { AUDIT_EVENTS, type AuditQuery, type AuditRecord } from '../ports.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** A query that was checked, with nothing left to default. */
export type CheckedAuditQuery = AuditQuery & { readonly limit: number }

/**
 * Checks a query and fills in its limit. Every reader answers only what this gives.
 *
 * @throws {ToolgateError} `query_invalid`, naming the field
 */
export function checkAuditQuery(query: AuditQuery): CheckedAuditQuery {
  const { limit = DEFAULT_LIMIT, beforeSeq, afterSeq, event } = query
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new ToolgateError('query_invalid', `limit must be a whole number from 1 to ${MAX_LIMIT}`)
  checkSeq('beforeSeq', beforeSeq)
  checkSeq('afterSeq', afterSeq)
  if (event !== undefined && !AUDIT_EVENTS.includes(event))
    throw new ToolgateError('query_invalid', `event must be one of ${AUDIT_EVENTS.join(', ')}`)
  return { ...query, limit }
}

/** Tells whether a record is one that a query asks for, its limit aside. */
export function matchesAuditQuery(record: AuditRecord, query: AuditQuery): boolean {
  return (
    (query.tool === undefined || record.tool === query.tool) &&
    (query.user === undefined || record.user_id === query.user) &&
    (query.event === undefined || record.event === query.event) &&
    (query.beforeSeq === undefined || record.seq < query.beforeSeq) &&
    (query.afterSeq === undefined || record.seq > query.afterSeq)
  )
}

function checkSeq(name: string, seq: number | undefined): void {
  if (seq === undefined || (Number.isSafeInteger(seq) && seq >= 0)) return
  throw new ToolgateError('query_invalid', `${name} must be a whole number, 0 or greater`)
}
