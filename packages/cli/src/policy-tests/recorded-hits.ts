import type { TargetOptions } from '../client.ts'
import { createApi, findTarget } from '../client.ts'
import type { Io } from '../io.ts'

export interface RecordedHitsOptions extends TargetOptions {
  /** Wall-clock milliseconds: records from then on. */
  readonly since: number
}

/** The events whose records name the clause that decided. */
const EVENTS = ['tool_blocked', 'tool_approval_required'] as const

/**
 * Returns how many real calls each clause held for, by its text (`files#drafts`): those that the running gateway has counted, or the
 * refusals and questions in its audit, whichever is more. Records of calls that were allowed name no clause.
 */
export async function readRecordedHits(
  { since, ...target }: RecordedHitsOptions,
  io: Io,
): Promise<ReadonlyMap<string, number>> {
  const api = createApi(findTarget(target, io.env))
  const recorded = new Map<string, number>()
  for (const event of EVENTS)
    for await (const { clause } of api.exportRecords({ event, since }))
      if (clause !== undefined) recorded.set(clause, (recorded.get(clause) ?? 0) + 1)
  for (const { clause, hits } of (await api.policy()).clauses)
    recorded.set(clause, Math.max(hits, recorded.get(clause) ?? 0))
  return recorded
}
