import type { ReactElement } from 'react'
import { AUDIT_OUTCOMES } from '../audit-feed.ts'
import { count, formatNumber, formatTime } from '../format.ts'
import type { AuditOutcome, OverviewBody } from '../wire.ts'

type Outcomes = OverviewBody['outcomes']

/** Returns a part of a whole in percent: `12 %`, `< 1 %`, or an empty text for none. */
export function partOf(part: number, whole: number): string {
  if (part === 0 || whole === 0) return ''
  const percent = (100 * part) / whole
  return percent < 1 ? '< 1 %' : `${Math.round(percent)} %`
}

/** Shows the outcomes of attempts over the period, as bars. */
export function Attempts({ body }: { body: OverviewBody }): ReactElement {
  const { buckets, bucketMs, since, outcomes } = body
  const most = Math.max(...buckets.map(sumOf))
  const shown = AUDIT_OUTCOMES.filter((outcome) => outcomes[outcome] > 0)
  return (
    <figure className="card attempts">
      <figcaption>
        <ul className="legend">
          {shown.map((outcome) => (
            <li key={outcome} className={`legend-item ${outcome}`}>
              <span className="swatch" aria-hidden="true" />
              {outcome.replace('_', ' ')} <span className="dim">{formatNumber(outcomes[outcome])}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div className="bars" role="img" aria-label={`Calls from ${formatTime(since, Date.now())} until now`}>
        {buckets.map((bucket, i) => (
          <Bar key={i} bucket={bucket} most={most} atMs={since + i * bucketMs} />
        ))}
      </div>
      <p className="bars-axis dim" aria-hidden="true">
        <span>{formatTime(since, Date.now())}</span>
        <span>tallest bar: {count(most, 'call')}</span>
        <span>now</span>
      </p>
    </figure>
  )
}

function Bar({ bucket, most, atMs }: { bucket: Outcomes; most: number; atMs: number }): ReactElement {
  const parts = AUDIT_OUTCOMES.filter((outcome) => bucket[outcome] > 0)
  return (
    <div className="bar" title={`${formatTime(atMs, Date.now())}: ${wordsOf(bucket, parts)}`}>
      {parts.map((outcome) => (
        <div
          key={outcome}
          className={`legend-item ${outcome}`}
          style={{ height: `${(100 * bucket[outcome]) / Math.max(1, most)}%` }}
        />
      ))}
    </div>
  )
}

function wordsOf(bucket: Outcomes, parts: readonly AuditOutcome[]): string {
  if (parts.length === 0) return 'no calls'
  return parts.map((outcome) => `${formatNumber(bucket[outcome])} ${outcome.replace('_', ' ')}`).join(', ')
}

function sumOf(bucket: Outcomes): number {
  return AUDIT_OUTCOMES.reduce((sum, outcome) => sum + bucket[outcome], 0)
}
