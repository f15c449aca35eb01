import type { ReactElement } from 'react'
import { formatTime } from '../format.ts'
import type { Change } from '../troubles.ts'

interface PolicyMarksProps {
  readonly changes: readonly Change[]
  readonly since: number
  readonly until: number
}

/** Shows on a chart when the policy changed, by whom, with links. */
export function PolicyMarks({ changes, since, until }: PolicyMarksProps): ReactElement {
  return (
    <>
      {changes
        .filter(({ atMs }) => atMs >= since && atMs < until)
        .map(({ atMs, what, by, href }) => {
          const name = `${what}${by === undefined ? '' : ` by ${by}`}, ${formatTime(atMs, Date.now())}`
          const left = `${(100 * (atMs - since)) / (until - since)}%`
          return <a key={href} className="policy-mark" href={href} style={{ left }} title={name} aria-label={name} />
        })}
    </>
  )
}
