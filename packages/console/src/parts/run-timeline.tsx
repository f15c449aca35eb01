import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { useApi } from '../hooks.ts'
import { type RunStep, toRunSteps } from '../run-timeline.ts'
import type { AuditBody } from '../wire.ts'
import { EventBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Loading } from './panels.tsx'
import { At } from './when.tsx'

const MAX_RECORDS = 200

interface RunTimelineProps {
  readonly run?: string
  /** The session of a client, in place of a run. */
  readonly session?: string
  /** The tenant, or empty for none. Absent if it is unknown. */
  readonly tenant?: string
  /** The number of the displayed record. */
  readonly seq?: number
}

/** Shows the calls of a run, oldest first, with the labels that each raised. */
export function RunTimeline({ run, session, tenant, seq }: RunTimelineProps): ReactElement {
  const { data, error } = useApi<AuditBody>({
    key: ['audit', 'run', run, session],
    path: '/api/audit',
    parameters: { run, session, limit: MAX_RECORDS },
    everyMs: 2000,
  })
  if (error && !data) return <p className="dim">{error.message}</p>
  if (!data) return <Loading what="the run" />
  // Another tenant's run may have the same id.
  const steps = toRunSteps(data.records.filter((record) => tenant === undefined || (record.tenant ?? '') === tenant))
  return (
    <>
      {data.records.length === MAX_RECORDS && <p className="dim">Its latest {MAX_RECORDS} records.</p>}
      <ol className="recent timeline">
        {steps.map((step) => (
          <Step key={step.record.seq} step={step} isCurrent={step.record.seq === seq} />
        ))}
      </ol>
      <p className="dim">
        {steps.at(-1)?.labels.length ? `The run is ${steps.at(-1)?.labels.join(', ')}.` : 'The run has no labels.'}
      </p>
    </>
  )
}

function Step({ step: { record, raised, because }, isCurrent }: { step: RunStep; isCurrent: boolean }): ReactElement {
  const { seq, ts, tool, run_id: run = '', input_preview: input } = record
  return (
    <li aria-current={isCurrent ? 'true' : undefined} className={raised.length > 0 ? 'rises' : undefined}>
      <a href={linkTo('live', { record: String(seq) })}>
        <At at={ts} />
      </a>
      {tool === undefined ? <span>the run {run}</span> : <Exact text={tool} className="id" />}
      <EventBadge record={record} />
      {raised.map((label) => (
        <span key={label} className="badge bad">
          now {label}
        </span>
      ))}
      {input !== undefined && <Exact text={input} className="id dim" />}
      {because.map((text) => (
        <span key={text} className="because">
          <Exact text={text} />
        </span>
      ))}
    </li>
  )
}
