import type { ClauseCount, ClauseCountStore } from '@toolgate/core/stores'
import { FORGET_MS, toClauseCount } from '../clause-rows.ts'
import type { StoresDatabase } from './database.ts'

/** Returns the counts of clauses in the database, shared by every process that opens it. */
export function clauseCountsIn(db: StoresDatabase): ClauseCountStore {
  const upsert = db.prepare(
    'INSERT INTO clause_counts (id, hits, last_hit_at, counted_since, named_at) VALUES (?, ?, ?, ?, ?) ' +
      'ON CONFLICT (id) DO UPDATE SET hits = hits + excluded.hits, named_at = excluded.named_at, ' +
      'last_hit_at = nullif(max(coalesce(last_hit_at, 0), coalesce(excluded.last_hit_at, 0)), 0), ' +
      'counted_since = min(counted_since, excluded.counted_since)',
  )
  const select = db.prepare('SELECT id, hits, last_hit_at, counted_since FROM clause_counts WHERE id = ?')
  const forget = db.prepare('DELETE FROM clause_counts WHERE named_at < ?')
  return {
    // A write to this database has either happened or thrown, so no batch is sent twice.
    add(counts) {
      const nowMs = db.clock.wallMs()
      return db.write(() => {
        for (const { id, hits, lastHitAt = null, countedSince } of counts)
          upsert.run(id, hits, lastHitAt, countedSince, nowMs)
        forget.run(nowMs - FORGET_MS)
      })
    },
    read: (ids) =>
      db.read(() =>
        ids.flatMap((id): ClauseCount[] => {
          const row = select.get(id)
          return row ? [toClauseCount(row)] : []
        }),
      ),
  }
}
