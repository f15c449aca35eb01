import type { ReactElement } from 'react'
import { formatAgo, formatExact, formatFor, formatTime } from '../format.ts'
import { useNow } from '../hooks.ts'

/** Shows an age, kept up to date, with the exact time as its title: `3 min ago`. */
export function Ago({ ms }: { ms: number }): ReactElement {
  const nowMs = useNow(Date.now() - ms < 60_000 ? 1000 : 10_000)
  return <Time ms={ms} text={formatAgo(ms, nowMs)} />
}

/** Shows the duration since a time: `for 3 min`. */
export function Since({ ms }: { ms: number }): ReactElement {
  const nowMs = useNow(Date.now() - ms < 60_000 ? 1000 : 10_000)
  return <Time ms={ms} text={formatFor(ms, nowMs)} />
}

/** Shows a time, with its date if it is not of today, and the exact time as its title. `at`: milliseconds, or ISO 8601. */
export function At({ at }: { at: number | string }): ReactElement {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  return <Time ms={ms} text={formatTime(ms, Date.now())} />
}

/** Says that calls are still being counted, and up to which time they are. */
export function Counting({ to }: { to: number | undefined }): ReactElement {
  return to === undefined ? (
    <>counting…</>
  ) : (
    <>
      counted up to <At at={to} />…
    </>
  )
}

function Time({ ms, text }: { ms: number; text: string }): ReactElement {
  return (
    <time className="since" dateTime={new Date(ms).toISOString()} title={formatExact(ms)}>
      {text}
    </time>
  )
}
