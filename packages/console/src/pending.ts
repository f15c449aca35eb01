import type { UseQueryResult } from '@tanstack/react-query'
import type { ApiError } from './api.ts'
import { type Query, useApi } from './hooks.ts'
import type { ApprovalsBody, WaitingApprovalsBody } from './wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000

/** The waiting requests with their inputs. */
export const PENDING = {
  key: ['approvals', 'pending'],
  path: '/api/approvals',
  parameters: { status: 'pending', limit: MAX_PENDING },
  everyMs: REFRESH_MS,
} as const satisfies Query

/** What every page shows of them: how many there are, and whose. */
export const WAITING = {
  key: ['approvals', 'waiting'],
  path: '/api/approvals/waiting',
  everyMs: REFRESH_MS,
} as const satisfies Query

export function usePending(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi(PENDING)
}

export function useWaiting(): UseQueryResult<WaitingApprovalsBody, ApiError> {
  return useApi(WAITING)
}
