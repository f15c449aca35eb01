import { type ReactElement, useState } from 'react'
import type { Approval } from '../wire.ts'
import { Exact } from './exact.tsx'
import { RunTimeline } from './run-timeline.tsx'
import { Ago } from './when.tsx'

type Trail = NonNullable<Approval['trail']>

/** Shows the run's calls before this call, and the recipients of the call. */
export function ApprovalTrail({ approval: { run, trail } }: { approval: Approval }): ReactElement {
  return (
    <>
      <Facts trail={trail} />
      {run !== undefined && <RunSoFar run={run} />}
    </>
  )
}

/** Shows the timeline of a run. It is fetched when it is opened. */
function RunSoFar({ run }: { run: string }): ReactElement {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="run-so-far" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>The run’s timeline</summary>
      {isOpen && <RunTimeline run={run} />}
    </details>
  )
}

/** Shows the facts about a run. It is empty if no rule reads runs. */
function Facts({ trail }: { trail: Trail | undefined }): ReactElement | null {
  if (!trail || (!trail.isUnknown && trail.read.length === 0 && trail.sends.length === 0)) return null
  const { read, sends, isUnknown } = trail
  return (
    <dl className="stack tight trail">
      {isUnknown === true && (
        <div>
          <dt>The run</dt>
          <dd className="row">
            <span className="badge wait">unknown</span> Nobody knows what it has done so far.
          </dd>
        </div>
      )}
      {read.map((one) => (
        <Read key={one.label} {...one} />
      ))}
      {sends.map((one, i) => (
        <Sent key={i} {...one} />
      ))}
    </dl>
  )
}

function Read({ label, calls }: Trail['read'][number]): ReactElement {
  return (
    <div>
      <dt>Has read</dt>
      <dd className="row">
        <span className={`badge ${label === 'untrusted' ? 'bad' : 'ask'}`}>{label}</span>
        {calls.map(({ tool, atMs }) => (
          <span key={tool}>
            <Exact text={tool} className="id" />{' '}
            <span className="dim">
              <Ago ms={atMs} />
            </span>
          </span>
        ))}
      </dd>
    </div>
  )
}

const ORIGINS = {
  user: ['good', 'the user named it'],
  trusted: ['good', 'from a trusted tool'],
  unknown: ['ask', 'named by nobody'],
  untrusted: ['bad', 'from untrusted output'],
} as const

function Sent({ field, value, origin }: Trail['sends'][number]): ReactElement {
  const [style, words] = origin === undefined ? [] : ORIGINS[origin]
  return (
    <div>
      <dt>Sends to</dt>
      <dd className="row">
        <Exact text={field} className="id" />
        <Exact text={value} className="strong" />
        {words !== undefined && <span className={`badge ${style}`}>{words}</span>}
      </dd>
    </div>
  )
}
