import type { AuditRecord } from '@toolgate/core/audit'
import type { ChangeDeps } from './questions.ts'

const WEEK_MS = 7 * 86_400_000
/** How long the history of a run may last after its last use: what is read before `since`, so that runs are known. */
const BEFORE_MS = 86_400_000
/** What takes longer is for the command. */
export const MAX_MS = 60_000

/** Records of the audit, for a minute. */
export interface RecordsInTime {
  /** Calls from then on count. Wall-clock milliseconds; default a week ago. */
  readonly since: number
  /** Reads them from the start, with those before `since` that say what runs had done. */
  read(): AsyncIterable<AuditRecord>
  /** Whether all were read before the minute was over. */
  isWhole(): boolean
}

export function recordsInTime(
  { nowMs, records }: Pick<ChangeDeps, 'nowMs' | 'records'>,
  since = nowMs - WEEK_MS,
): RecordsInTime {
  const endMs = performance.now() + MAX_MS
  let isWhole = true
  return {
    since,
    async *read() {
      for await (const record of records({ since: since - BEFORE_MS })) {
        isWhole &&= performance.now() <= endMs
        if (!isWhole) return
        yield record
      }
    },
    isWhole: () => isWhole,
  }
}
