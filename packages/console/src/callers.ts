import { type Answer, useApi } from './hooks.ts'
import type { CallersBody } from './wire.ts'

const REFRESH_MS = 8000

/** Fetches the callers that `as` may name. */
export function useCallers(): Answer<CallersBody> {
  return useApi<CallersBody>({ key: ['callers'], path: '/api/callers', everyMs: REFRESH_MS })
}
