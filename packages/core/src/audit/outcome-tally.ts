import type { AuditCountQuery, AuditCounts, AuditOutcome } from '../ports.ts'
import { bucketCount } from './query.ts'

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
  return { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, abandoned: 0 }
}
