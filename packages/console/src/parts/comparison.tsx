import { type ReactElement, useMemo, useState } from 'react'
import { postJson } from '../api.ts'
import { count, formatClock } from '../format.ts'
import { changedLines, diffLines } from '../line-diff.ts'
import type { ApprovalComparisonBody, ApprovalRow } from '../wire.ts'
import { announce } from './announcer.tsx'
import { DiffBlock, Exact } from './exact.tsx'
import { Problem } from './form.tsx'

/** The longest wait, in milliseconds. It is longer than the gateway waits for the server. */
const TIMEOUT_MS = 20_000
/** The maximum number of lines. A person does not read more. */
const MAX_LINES = 1000

interface ComparisonProps {
  readonly approval: ApprovalRow
  /** Whether the request can no longer be decided. The comparison stays, so that the card keeps its size. */
  readonly isOver: boolean
}

/** Compares a call's new content with the current content, on request. Nothing is read before. */
export function Comparison({ approval: { id, tool }, isOver }: ComparisonProps): ReactElement {
  const [body, setBody] = useState<ApprovalComparisonBody>()
  const [problem, setProblem] = useState('')
  const [isReading, setReading] = useState(false)
  const read = async (): Promise<void> => {
    if (isReading) return
    setReading(true)
    try {
      const path = `/api/approvals/${encodeURIComponent(id)}/compare`
      setBody(await postJson<ApprovalComparisonBody>(path, {}, { timeoutMs: TIMEOUT_MS }))
      setProblem('')
      announce('Compared with what is there')
    } catch (error) {
      setBody(undefined)
      setProblem(error instanceof Error ? error.message : String(error))
    }
    setReading(false)
  }
  return (
    <div className="stack comparison" aria-busy={isReading}>
      <button
        type="button"
        className="compare"
        aria-keyshortcuts="C"
        aria-disabled={isReading}
        inert={isOver}
        onClick={() => void read()}
      >
        {isReading ? 'Reading…' : body ? 'Read again' : 'Compare with what is there'}
        <span className="unseen"> for {tool}</span>
      </button>
      <Problem text={problem} />
      {body && <Compared body={body} tool={tool} />}
    </div>
  )
}

function Compared({ body, tool }: { body: ApprovalComparisonBody; tool: string }): ReactElement {
  const { atMs, notShown, reader, field, masked, present, proposed } = body
  if (notShown !== undefined || present === undefined || proposed === undefined)
    return (
      <p className="compared-note">
        <strong>Not shown:</strong> <Exact text={notShown ?? 'nothing was read.'} />
      </p>
    )
  return (
    <>
      <p className="compared-note dim">
        As of <time dateTime={new Date(atMs).toISOString()}>{formatClock(atMs)}</time>, read with{' '}
        <Exact text={reader ?? ''} className="id" />. It may change until the call runs.
        {masked && ' Secrets that are there are masked.'}
      </p>
      <Difference
        present={present}
        proposed={proposed}
        label={`What ${tool} would change, by ${field ?? 'its input'}`}
      />
    </>
  )
}

function Difference({ present, proposed, label }: { present: string; proposed: string; label: string }): ReactElement {
  const lines = useMemo(() => changedLines(diffLines(present, proposed)), [present, proposed])
  if (present === proposed) return <p className="compared-note">There is no difference.</p>
  const left = lines.length - MAX_LINES
  return (
    <>
      <DiffBlock lines={lines.slice(0, MAX_LINES)} label={label} />
      {left > 0 && (
        <p className="compared-note">
          {count(left, 'further line')} of the difference {left === 1 ? 'is' : 'are'} not shown. The whole text of the
          call stands above.
        </p>
      )}
    </>
  )
}
