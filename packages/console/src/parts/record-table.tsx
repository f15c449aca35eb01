import { type ReactElement, useCallback } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { formatDuration, formatTime } from '../format.ts'
import type { Choose } from '../hooks.ts'
import type { AuditRecord } from '../wire.ts'
import { EventBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { WindowedTable } from './windowed-table.tsx'

export interface RecordTableProps {
  readonly records: readonly AuditRecord[]
  readonly choose: Choose
  /** Called near the end of the list. */
  readonly onEnd: () => void
}

const COLUMNS = ['Time', 'Event', 'Tool', 'User', 'Reason', 'Duration'] as const

/** The table of all loaded records. */
export function RecordTable({ records, choose, onEnd }: RecordTableProps): ReactElement {
  const wide = useCallback((record: AuditRecord) => <Wide record={record} choose={choose} />, [choose])
  return (
    <WindowedTable
      rows={records}
      caption="Attempts to call a tool, and events of the gate, newest first"
      columns={COLUMNS}
      prefix="record"
      className="events"
      keyOf={({ seq }) => seq}
      wide={wide}
      narrow={narrow}
      onEnd={onEnd}
      endRows={200}
    />
  )
}

function Wide({ record, choose }: { record: AuditRecord; choose: Choose }): ReactElement {
  return (
    <>
      <td>
        <Opener record={record} />
      </td>
      <td>
        <EventBadge record={record} />
      </td>
      <td className="record-tool">
        <Choice what="tool" text={record.tool} choose={choose} />
      </td>
      <td>
        <Choice what="user" text={record.user_id} choose={choose} /> <TenantTag tenant={record.tenant} />
      </td>
      <td>
        <Exact text={explainRecord(record)} />
      </td>
      <td className="record-duration">
        <Duration record={record} />
      </td>
    </>
  )
}

function narrow(record: AuditRecord): ReactElement {
  const { user_id: user, duration_ms: ms, tool } = record
  return (
    <>
      <span className="line">
        <EventBadge record={record} />
        {tool !== undefined && <Exact text={tool} className="id" />}
        <span className="end">
          <Opener record={record} />
        </span>
      </span>
      <span className="line dim">
        {user !== undefined && <Exact text={user} />}
        <TenantTag tenant={record.tenant} />
        {ms !== undefined && <span>{formatDuration(ms)}</span>}
        <Exact text={explainRecord(record)} />
      </span>
    </>
  )
}

/** The time of a record opens it. */
function Opener({ record: { seq, ts } }: { record: AuditRecord }): ReactElement {
  const time = formatTime(Date.parse(ts), Date.now())
  return (
    <a
      className="opener"
      data-focus
      data-seq={seq}
      href={recordLink(seq)}
      title={`${ts}, record ${seq}`}
      aria-label={`${time} record ${seq}`}
    >
      <time dateTime={ts}>{time}</time>
    </a>
  )
}

/** Returns the current address with `record` added, so that the filters stay. */
function recordLink(seq: number): string {
  const [path = '', query = ''] = location.hash.split('?')
  const choices = new URLSearchParams(query)
  choices.set('record', String(seq))
  return `${path === '' ? '#/live' : path}?${choices.toString()}`
}

function Choice({
  text,
  what,
  choose,
}: {
  text: string | undefined
  what: 'tool' | 'user'
  choose: Choose
}): ReactElement {
  if (text === undefined) return <span className="dim">–</span>
  return (
    <button type="button" className="choice" title={`Filter by this ${what}`} onClick={() => choose({ [what]: text })}>
      <Exact text={text} />
    </button>
  )
}

function Duration({ record: { duration_ms: ms } }: { record: AuditRecord }): ReactElement {
  return ms === undefined ? <span className="dim">–</span> : <>{formatDuration(ms)}</>
}
