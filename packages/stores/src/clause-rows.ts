import type { ClauseCount } from '@toolgate/core/stores'
import { numberIn, type Row, textIn } from './rows.ts'

/** A clause is deleted when no gateway has had it for this long. */
export const FORGET_MS = 90 * 24 * 60 * 60_000

/** Returns a row as the counts of a clause. */
export function toClauseCount(row: Row): ClauseCount {
  return {
    id: textIn(row, 'id'),
    hits: numberIn(row, 'hits'),
    ...(row['last_hit_at'] !== null && { lastHitAt: numberIn(row, 'last_hit_at') }),
    countedSince: numberIn(row, 'counted_since'),
  }
}
