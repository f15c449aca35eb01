import type { ReactElement } from 'react'
import { formatAgo, formatTime } from '../format.ts'

/** `3 min ago`, with the exact time beside it for those who ask. */
export function Ago({ ms, nowMs }: { ms: number; nowMs: number }): ReactElement {
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatTime(ms, nowMs)}>
      {formatAgo(ms, nowMs)}
    </time>
  )
}
