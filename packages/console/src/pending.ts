import type { UseQueryResult } from '@tanstack/react-query'
import type { ApiError } from './api.ts'
import { useApi } from './hooks.ts'
import type { ApprovalsBody } from './wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000

/** Fetches the waiting requests, for the page and for the count in the header. */
export function usePending(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi({
    key: ['approvals', 'pending'],
    path: '/api/approvals',
    parameters: { status: 'pending', limit: MAX_PENDING },
    everyMs: REFRESH_MS,
  })
}
