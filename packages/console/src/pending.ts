import { type Answer, useApi } from './hooks.ts'
import type { ApprovalsBody, WaitingApprovalsBody } from './wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000

/** Fetches the waiting requests with their inputs, for the inbox. */
export function usePending(): Answer<ApprovalsBody> {
  return useApi({
    key: ['approvals', 'pending'],
    path: '/api/approvals',
    parameters: { status: 'pending', limit: MAX_PENDING },
    everyMs: REFRESH_MS,
  })
}

/** Fetches the number of waiting requests and their users, which every page shows. */
export function useWaiting(): Answer<WaitingApprovalsBody> {
  return useApi({ key: ['approvals', 'waiting'], path: '/api/approvals/waiting', everyMs: REFRESH_MS })
}
