import { clauseText } from '@toolgate/core/policy'
import { readRecords, type TestedClause } from '@toolgate/change'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { Io } from '../io.ts'

interface RecordedHitsOptions extends TargetOptions {
  /** The time of the first record, in wall-clock milliseconds. */
  readonly since: number
}

/** The events whose records name the deciding clause. */
const EVENTS: ReadonlySet<string> = new Set(['tool_blocked', 'tool_approval_required'])

interface RecordedHits {
  /** Returns the number of real calls that matched a clause. */
  readonly hitsOf: (clause: Pick<TestedClause, 'id' | 'ref'>) => number
  /** The number of records that are missing or cannot be read. */
  readonly missing: number
}

/**
 * Returns the number of real calls that matched each clause. It is the running gateway's count for a clause with this
 * content or, if larger, the number of refusals and questions in the audit for the clause's `id`. Records of allowed
 * calls name no clause.
 */
export async function readRecordedHits({ since, ...target }: RecordedHitsOptions, io: Io): Promise<RecordedHits> {
  const api = createApi(findTarget(target, io))
  const recorded = new Map<string, number>()
  const { records, missing } = readRecords(api, { since })
  let missed = 0
  for await (const record of records) {
    const { event, clause } = record
    missed += missing(record)
    if (clause !== undefined && EVENTS.has(event)) recorded.set(clause, (recorded.get(clause) ?? 0) + 1)
  }
  const counted = new Map((await api.policy()).clauses.map(({ id, hits }) => [id, hits]))
  return {
    hitsOf({ id, ref }) {
      // A clause without an id is named by its position, which another clause may have had.
      const named = ref.id === undefined ? 0 : (recorded.get(clauseText(ref)) ?? 0)
      return Math.max(counted.get(id) ?? 0, named)
    },
    missing: missed + missing(),
  }
}
