import type { ReactElement } from 'react'
import { formatAgo, formatFor, formatTime } from '../format.ts'
import { useNow } from '../hooks.ts'

/** Shows an age, kept up to date, with the exact time as its title: `3 min ago`. */
export function Ago({ ms }: { ms: number }): ReactElement {
  const nowMs = useNow(Date.now() - ms < 60_000 ? 1000 : 10_000)
  return <Time ms={ms} nowMs={nowMs} text={formatAgo(ms, nowMs)} />
}

/** Shows the duration since a time: `for 3 min`. */
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
