import { useMemo } from 'react'
import type { ApiError } from './api.ts'
import { useApi } from './hooks.ts'
import { toToolsBody } from './tool-columns.ts'
import type { ToolColumnsBody, ToolsBody } from './wire.ts'

interface ToolsQuery {
  readonly as: string
  /** A caller as JSON, in place of `as`. */
  readonly caller?: string
  readonly app?: string
  readonly kind?: string
  readonly everyMs?: number
  readonly enabled: boolean
}

interface Tools {
  readonly data: ToolsBody | undefined
  readonly error: ApiError | null
  readonly isPlaceholderData: boolean
  readonly refetch: () => Promise<unknown>
}

/** Fetches all items of one kind, with the decisions for a caller. */
export function useTools({ as, caller = '', app = '', kind = '', ...options }: ToolsQuery): Tools {
  const { data, error, isPlaceholderData, refetch } = useApi<ToolColumnsBody>({
    key: ['tools', as, caller, app, kind],
    path: '/api/tools/columns',
    parameters: { as, caller, app, kind },
    ...options,
  })
  const body = useMemo(() => data && toToolsBody(data), [data])
  return { data: body, error, isPlaceholderData, refetch }
}
