import { setTimeout as delay } from 'node:timers/promises'
import type { AuditEntry } from '@toolgate/core/audit'
import { ownEntry } from './own-records.ts'
import { Rounds } from './rounds.ts'

interface InputRetentionParts {
  readonly keepForMs: number
  readonly nowMs: () => number
  readonly onFault: (error: unknown) => void
  readonly hasBefore: (atMs: number) => Promise<boolean>
  /** Removes some inputs. Returns whether there may be more. */
  readonly removeBefore: (atMs: number) => Promise<boolean>
  /** Whether an error of `removeBefore` is temporary. */
  readonly isPassing: (error: unknown) => boolean
  /** Stores a record of the audit itself, durably. */
  readonly record: (entry: AuditEntry) => Promise<void>
}

const HOUR_MS = 3_600_000
/** The pause between removals, in milliseconds, so that calls do not wait for them. */
const PAUSE_MS = 10

/**
 * Returns rounds that remove sealed inputs whose time is over. The records stay and still verify. A record first names
 * the removed inputs, by whole hours; then they are removed. After a crash, the next round continues.
 */
export function inputRetention(parts: InputRetentionParts): Rounds {
  const { keepForMs, nowMs, onFault, hasBefore, removeBefore, isPassing, record } = parts
  const rounds: Rounds = new Rounds(async () => {
    const before = Math.floor((nowMs() - keepForMs) / HOUR_MS) * HOUR_MS
    if (!(await hasBefore(before))) return
    await record(
      ownEntry('inputs_pruned', nowMs(), { reason: 'retention', inputs_before: new Date(before).toISOString() }),
    )
    for (let hasMore = true; hasMore && !rounds.isClosed; await delay(PAUSE_MS)) {
      try {
        hasMore = await removeBefore(before)
      } catch (error) {
        if (!isPassing(error)) throw error
      }
    }
  }, onFault)
  rounds.start()
  return rounds
}
