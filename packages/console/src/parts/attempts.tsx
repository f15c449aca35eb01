import { type KeyboardEvent, type PointerEvent, type ReactElement, useState } from 'react'
import { linkTo } from '../address.ts'
import { AUDIT_OUTCOMES } from '../audit-feed.ts'
import { count, formatNumber, formatTime } from '../format.ts'
import { choose, useChoices } from '../hooks.ts'
import { type BucketRange, joined, toBucketRange } from '../bucket-range.ts'
import { ofRevision } from '../troubles.ts'
import { useRevisions } from '../troubles-query.ts'
import type { OverviewBody } from '../wire.ts'
import { PolicyMarks } from './policy-marks.tsx'

type Outcomes = OverviewBody['outcomes']

/** Returns a part of a whole in percent: `12 %`, `< 1 %`, or an empty text for none. */
export function partOf(part: number, whole: number): string {
  if (part === 0 || whole === 0) return ''
  const percent = (100 * part) / whole
  return percent < 1 ? '< 1 %' : `${Math.round(percent)} %`
}

/** Shows the outcomes of attempts over the period, as bars. */
export function Attempts({ body }: { body: OverviewBody }): ReactElement {
  const { buckets, since, outcomes } = body
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
      <Bars body={body} most={most} />
      <p className="bars-axis dim" aria-hidden="true">
        <span>{formatTime(since, Date.now())}</span>
        <span>tallest bar: {count(most, 'call')}</span>
        <span>now</span>
      </p>
      <Chosen body={body} />
    </figure>
  )
}

/** A range that a person is choosing: where it began, and where it is now. */
interface Choosing {
  readonly from: number
  readonly to: number
  /** Whether the range is being chosen. Otherwise the pointer or the arrow keys only point at a bar. */
  readonly isRange: boolean
}

/** Shows the bars. A range is dragged with a pointer, or with Shift and the arrow keys. */
function Bars({ body, most }: { body: OverviewBody; most: number }): ReactElement {
  const { buckets, bucketMs, since, until } = body
  const [choosing, setChoosing] = useState<Choosing>()
  const of = useChoices()
  const chosen = toBucketRange(of('from'), of('to'), body)
  const range = choosing?.isRange ? joined(choosing.from, choosing.to) : chosen
  const last = buckets.length - 1
  const apply = ({ first, end }: BucketRange): void => {
    setChoosing(undefined)
    choose({ from: toText(since + first * bucketMs), to: toText(Math.min(until, since + end * bucketMs)) })
  }
  const indexAt = ({ currentTarget, clientX }: PointerEvent<HTMLElement>): number => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.max(0, Math.min(last, Math.floor(((clientX - left) / width) * buckets.length)))
  }
  const point = (event: PointerEvent<HTMLElement>): void => {
    const to = indexAt(event)
    setChoosing((now) => (now?.isRange ? { ...now, to } : { from: to, to, isRange: false }))
  }
  const press = (event: PointerEvent<HTMLElement>): void => {
    if (event.button !== 0) return
    event.currentTarget.setPointerCapture(event.pointerId)
    const at = indexAt(event)
    setChoosing({ from: at, to: at, isRange: true })
  }
  const key = (event: KeyboardEvent<HTMLElement>): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[event.key]
    if (event.key === 'Enter' && choosing) apply(joined(choosing.from, choosing.to))
    if (event.key === 'Escape') {
      setChoosing(undefined)
      choose({ from: '', to: '' })
    }
    if (step === undefined) return
    event.preventDefault()
    const at = choosing ?? { from: last, to: step < 0 ? last + 1 : last, isRange: false }
    const to = Math.max(0, Math.min(last, at.to + step))
    setChoosing({ from: event.shiftKey ? at.from : to, to, isRange: event.shiftKey })
  }
  const pointed = choosing && buckets[choosing.to]
  return (
    <>
      <div className="bars-box">
        <div
          className="bars"
          role="group"
          tabIndex={0}
          aria-label={`Calls from ${formatTime(since, Date.now())} until now. Arrow keys show the bars, Shift chooses a range.`}
          onPointerDown={press}
          onPointerMove={point}
          onPointerUp={() => choosing?.isRange && apply(joined(choosing.from, choosing.to))}
          onPointerCancel={() => setChoosing(undefined)}
          onPointerLeave={() => setChoosing((now) => (now?.isRange ? now : undefined))}
          onKeyDown={key}
        >
          {buckets.map((bucket, i) => (
            <Bar key={i} bucket={bucket} most={most} look={lookOf(i, range, choosing?.to)} />
          ))}
        </div>
        <RevisionMarks since={since} until={since + buckets.length * bucketMs} />
      </div>
      <p className="bars-value" role="status">
        {choosing &&
          pointed &&
          `${formatTime(since + choosing.to * bucketMs, Date.now())}: ${wordsOf(pointed)}${choosing.isRange ? ', Enter or release to choose' : ''}`}
      </p>
    </>
  )
}

function RevisionMarks({ since, until }: { since: number; until: number }): ReactElement {
  const { data } = useRevisions()
  return <PolicyMarks changes={(data?.revisions ?? []).map(ofRevision)} since={since} until={until} />
}

function lookOf(i: number, range: BucketRange | undefined, pointed: number | undefined): string {
  const isOut = range !== undefined && (i < range.first || i >= range.end)
  return `${isOut ? 'out' : ''} ${i === pointed ? 'pointed' : ''}`.trim()
}

function toText(ms: number): string {
  return new Date(ms).toISOString()
}

/** Shows the calls of the chosen range, with a link to them. */
function Chosen({ body }: { body: OverviewBody }): ReactElement | null {
  const of = useChoices()
  const [from, to] = [of('from'), of('to')]
  const range = toBucketRange(from, to, body)
  if (!range) return null
  const { buckets, since, bucketMs } = body
  const inside = buckets.slice(range.first, range.end)
  const total = Object.fromEntries(
    AUDIT_OUTCOMES.map((outcome) => [outcome, inside.reduce((sum, bucket) => sum + bucket[outcome], 0)]),
  ) as Outcomes
  return (
    <p className="bars-chosen">
      <b>
        {formatTime(since + range.first * bucketMs, Date.now())} to{' '}
        {formatTime(since + range.end * bucketMs, Date.now())}:
      </b>{' '}
      {wordsOf(total)}. <a href={linkTo('calls', { range: 'from … to', from, to })}>Show these calls</a>{' '}
      <button type="button" onClick={() => choose({ from: '', to: '' })}>
        Whole period
      </button>
    </p>
  )
}

interface BarProps {
  readonly bucket: Outcomes
  readonly most: number
  readonly look: string
}

function Bar({ bucket, most, look }: BarProps): ReactElement {
  const parts = AUDIT_OUTCOMES.filter((outcome) => bucket[outcome] > 0)
  return (
    <div className={`bar ${look}`.trim()}>
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

function wordsOf(bucket: Outcomes): string {
  const parts = AUDIT_OUTCOMES.filter((outcome) => bucket[outcome] > 0)
  if (parts.length === 0) return 'no calls'
  return parts.map((outcome) => `${formatNumber(bucket[outcome])} ${outcome.replace('_', ' ')}`).join(', ')
}

function sumOf(bucket: Outcomes): number {
  return AUDIT_OUTCOMES.reduce((sum, outcome) => sum + bucket[outcome], 0)
}
