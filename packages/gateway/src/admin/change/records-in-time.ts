import type { ReadRecords } from '@toolgate/change'
import type { ChangeDeps } from './questions.ts'

const WEEK_MS = 7 * 86_400_000
/**
 * The longest time that the history of a run may last after its last use. Records this long before `since` are read, so
 * that runs are known.
 */
const BEFORE_MS = 86_400_000
/** The time limit. A longer search needs the command line. */
export const MAX_MS = 60_000

/** Reads audit records for at most a minute. */
interface RecordsInTime {
  /** Only calls from this time on count, in wall-clock milliseconds. Default: a week ago. */
  readonly since: number
  /** Reads the records, including those before `since` that contain the history of runs. */
  read(): ReadRecords
  /** Whether all records were read within the minute. */
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
