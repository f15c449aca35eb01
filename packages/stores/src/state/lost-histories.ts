import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { HistoryItem } from '@toolgate/core/stores'
import { keyOf } from '../history-items.ts'

/** The name of the row with the entries that all lost histories have. No history has this name. */
export const LOST = 'lost'

/** The longest lifetime of a caller's label, in milliseconds. */
const KEPT_MS = 366 * 86_400_000
/** A run that was used after the backup has not expired. Its lifetime, in milliseconds. */
const RUN_MS = 86_400_000

/**
 * Marks all histories as lost, even those of callers without a history here, because the database is older than data
 * that was read since.
 *
 * Each history gets another generation, for processes that know it.
 */
export function loseHistories(db: DatabaseSync, nowMs: number): void {
  const lost: HistoryItem = { kind: 'unkept', text: '*', atMs: nowMs }
  const insert = `INSERT INTO histories (name, owner, generation, version, kept, bytes, expires_at)`
  db.prepare('DELETE FROM histories WHERE name = ?').run(LOST)
  db.prepare(`${insert} VALUES (?, ?, ?, 0, '[]', 0, ?)`).run(LOST, LOST, randomUUID(), nowMs + KEPT_MS)
  for (const { id } of db.prepare('SELECT id FROM histories').all())
    db.prepare('UPDATE histories SET generation = ? WHERE id = ?').run(randomUUID(), id ?? null)
  db.prepare('UPDATE histories SET version = version + 1, expires_at = max(expires_at, ?)').run(nowMs + RUN_MS)
  db.prepare(
    'INSERT OR REPLACE INTO history_items (history, version, key, item) SELECT id, version, ?, ? FROM histories',
  ).run(keyOf(lost), JSON.stringify(lost))
}
