import type { CallersQuery } from './callers-query.ts'
import { type Answer, useApi } from './hooks.ts'
import type { CallersBody } from './wire.ts'

const REFRESH_MS = 8000

/** Fetches callers that `as` may name. */
export function useCallers(query: CallersQuery, enabled = true): Answer<CallersBody> {
  return useApi<CallersBody>({
    key: ['callers', query],
    path: '/api/callers',
    parameters: { ...query },
    everyMs: REFRESH_MS,
    enabled,
  })
}
