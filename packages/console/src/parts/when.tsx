import type { ReactElement } from 'react'
import { formatAgo, formatFor, formatTime } from '../format.ts'
import { useNow } from '../hooks.ts'

/** `3 min ago`, kept up to date, with the exact time as its title. */
export function Ago({ ms }: { ms: number }): ReactElement {
  const nowMs = useNow(Date.now() - ms < 60_000 ? 1000 : 10_000)
  return <Time ms={ms} nowMs={nowMs} text={formatAgo(ms, nowMs)} />
}

/** `for 3 min`, since then. */
export function Since({ ms }: { ms: number }): ReactElement {
  const nowMs = useNow(Date.now() - ms < 60_000 ? 1000 : 10_000)
  return <Time ms={ms} nowMs={nowMs} text={formatFor(ms, nowMs)} />
}

function Time({ ms, nowMs, text }: { ms: number; nowMs: number; text: string }): ReactElement {
  return (
    <time className="since" dateTime={new Date(ms).toISOString()} title={formatTime(ms, nowMs)}>
      {text}
    </time>
  )
}
