import { clauseText } from '@toolgate/core/policy'
import { readRecords, type TestedClause } from '@toolgate/change'
import { createApi, findTarget, type TargetOptions } from '../client.ts'
import type { Io } from '../io.ts'

interface RecordedHitsOptions extends TargetOptions {
  /** Wall-clock milliseconds: records from then on. */
  readonly since: number
}

/** The events whose records name the clause that decided. */
const EVENTS: ReadonlySet<string> = new Set(['tool_blocked', 'tool_approval_required'])

interface RecordedHits {
  /** Returns how many real calls a clause held for. */
  readonly hitsOf: (clause: Pick<TestedClause, 'id' | 'ref'>) => number
  /** Records that are missing or cannot be read. */
  readonly missing: number
}

/**
 * Returns how many real calls each clause held for: those that the running gateway has counted for a clause with this content, or,
 * of a clause with an `id`, the refusals and questions in its audit, whichever is more. Records of allowed calls name no clause.
 */
export async function readRecordedHits({ since, ...target }: RecordedHitsOptions, io: Io): Promise<RecordedHits> {
  const api = createApi(findTarget(target, io.env))
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
      // Without an id, a clause is named by its place, where another one may have been.
      const named = ref.id === undefined ? 0 : (recorded.get(clauseText(ref)) ?? 0)
      return Math.max(counted.get(id) ?? 0, named)
    },
    missing: missed + missing(),
  }
}
