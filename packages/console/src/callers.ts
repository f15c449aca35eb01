import type { UseQueryResult } from '@tanstack/react-query'
import type { ApiError } from './api.ts'
import { useApi } from './hooks.ts'
import type { CallersBody } from './wire.ts'

const REFRESH_MS = 8000

/** Fetches the callers that `as` may name. */
export function useCallers(): UseQueryResult<CallersBody, ApiError> {
  return useApi<CallersBody>({ key: ['callers'], path: '/api/callers', everyMs: REFRESH_MS })
}
