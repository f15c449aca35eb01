import type { UseQueryResult } from '@tanstack/react-query'
import type { ApiError } from './api.ts'
import { useApi } from './hooks.ts'
import type { ApprovalsBody, WaitingApprovalsBody } from './wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000

/** Fetches the waiting requests with their inputs, for the inbox. */
export function usePending(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi({
    key: ['approvals', 'pending'],
    path: '/api/approvals',
    parameters: { status: 'pending', limit: MAX_PENDING },
    everyMs: REFRESH_MS,
  })
}

/** Fetches what every page shows of them: how many there are, and whose. */
export function useWaiting(): UseQueryResult<WaitingApprovalsBody, ApiError> {
  return useApi({ key: ['approvals', 'waiting'], path: '/api/approvals/waiting', everyMs: REFRESH_MS })
}
