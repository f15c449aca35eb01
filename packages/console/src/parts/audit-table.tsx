import { memo, type ReactElement } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { formatDuration, formatTime } from '../format.ts'
import type { AuditRecord } from '../wire.ts'
import { EventBadge } from './badges.tsx'
import { Exact } from './exact.tsx'

export interface AuditTableProps {
  readonly records: readonly AuditRecord[]
  readonly nowMs: number
  readonly choose: (changes: Readonly<Record<string, string>>) => void
}

export function AuditTable({ records, nowMs, choose }: AuditTableProps): ReactElement {
  return (
    <table className="audit">
      <caption className="unseen">Attempts to call a tool, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col" className="event">
            Event
          </th>
          <th scope="col">Tool</th>
          <th scope="col" className="wide">
            User
          </th>
          <th scope="col" className="wide">
            Reason
          </th>
          <th scope="col" className="wide number">
            Duration
          </th>
        </tr>
      </thead>
      <tbody>
        {records.map((record) => (
          <Row key={record.seq} record={record} day={new Date(nowMs).toDateString()} nowMs={nowMs} choose={choose} />
        ))}
      </tbody>
    </table>
  )
}

type RowProps = { record: AuditRecord; day: string; nowMs: number; choose: AuditTableProps['choose'] }

const Row = memo(({ record, nowMs, choose }: RowProps): ReactElement => {
  const { ts, tool, user_id: user, reason, duration_ms: durationMs } = record
  const words = explainRecord(record)
  return (
    <tr>
      <td>
        <time dateTime={ts} title={`${ts}, record ${record.seq}`}>
          {formatTime(Date.parse(ts), nowMs)}
        </time>
      </td>
      <td className="event">
        <EventBadge record={record} />
      </td>
      <td className="tool-id">
        <span className="narrowest">
          <EventBadge record={record} />
        </span>
        {tool === undefined ? '–' : <Choice text={tool} what="tool" choose={choose} />}
        <span className="narrow dim">
          {user !== undefined && <Exact text={user} />}
          {durationMs !== undefined && ` · ${formatDuration(durationMs)}`}
        </span>
        {words !== '' && (
          <span className="narrow">
            <Exact text={words} />
          </span>
        )}
      </td>
      <td className="wide">{user === undefined ? '–' : <Choice text={user} what="user" choose={choose} />}</td>
      <td className="wide">
        <Exact text={words} />
        {reason !== undefined && reason !== words && <code className="code">{reason}</code>}
      </td>
      <td className="wide number">{durationMs === undefined ? '–' : formatDuration(durationMs)}</td>
    </tr>
  )
}, isSame)

/** Only another day changes how a time is written. */
function isSame(before: RowProps, after: RowProps): boolean {
  return before.record.seq === after.record.seq && before.day === after.day
}

function Choice({
  text,
  what,
  choose,
}: {
  text: string
  what: 'tool' | 'user'
  choose: AuditTableProps['choose']
}): ReactElement {
  return (
    <button
      type="button"
      className="choice"
      title={`Only this ${what}`}
      onClick={() => choose({ [what]: text, before: '' })}
    >
      <Exact text={text} />
    </button>
  )
}
