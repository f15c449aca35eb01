import type { ReadRecords } from '@toolgate/change'
import type { ChangeDeps } from './questions.ts'

const WEEK_MS = 7 * 86_400_000
/** How long the history of a run may last after its last use: what is read before `since`, so that runs are known. */
const BEFORE_MS = 86_400_000
/** A search that takes longer is for the command. */
export const MAX_MS = 60_000

/** Records of the audit, for a minute. */
export interface RecordsInTime {
  /** Calls from then on count. Wall-clock milliseconds; default a week ago. */
  readonly since: number
  /** Reads them from the start, with those before `since` that say what runs had done. */
  read(): ReadRecords
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
    read() {
      const found = records({ since: since - BEFORE_MS })
      async function* inTime() {
        for await (const record of found.records) {
          isWhole &&= performance.now() <= endMs
          if (!isWhole) return
          yield record
        }
      }
      return { ...found, records: inTime() }
    },
    isWhole: () => isWhole,
  }
}
