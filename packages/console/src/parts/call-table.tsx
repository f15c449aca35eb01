import { type ReactElement, useCallback } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { CALL_LOOKS } from '../states.ts'
import { formatDuration, formatTime } from '../format.ts'
import type { Choose } from '../hooks.ts'
import type { AuditRecord, CallRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { WindowedTable } from './windowed-table.tsx'

interface CallTableProps {
  readonly calls: readonly CallRow[]
  readonly choose: Choose
  /** Called near the end of the list. */
  readonly onEnd: () => void
}

const COLUMNS = ['Time', 'Outcome', 'Tool', 'User', 'Why', 'Records', 'Duration'] as const

/** The table of all loaded calls. */
export function CallTable({ calls, choose, onEnd }: CallTableProps): ReactElement {
  const wide = useCallback((call: CallRow) => <Wide call={call} choose={choose} />, [choose])
  return (
    <WindowedTable
      rows={calls}
      caption="Calls, newest first"
      columns={COLUMNS}
      prefix="call"
      className="calls"
      keyOf={({ seq }) => seq}
      wide={wide}
      narrow={narrow}
      onEnd={onEnd}
    />
  )
}

function Wide({ call, choose }: { call: CallRow; choose: Choose }): ReactElement {
  const record = recordOf(call)
  return (
    <>
      <td>
        <Opener call={call} />
      </td>
      <td>
        <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />
      </td>
      <td className="id">
        <Choice name="tool" text={record?.tool} choose={choose} />
      </td>
      <td>
        <Choice name="user" text={record?.user_id} choose={choose} /> <TenantTag tenant={record?.tenant} />
      </td>
      <td>{record && <Exact text={explainRecord(record)} />}</td>
      <td className="n">{call.records.length}</td>
      <td className="n">{record?.duration_ms === undefined ? '–' : formatDuration(record.duration_ms)}</td>
    </>
  )
}

function narrow(call: CallRow): ReactElement {
  const record = recordOf(call)
  return (
    <>
      <span className="line">
        <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />
        {record?.tool !== undefined && <Exact text={record.tool} className="id" />}
        <span className="end">
          <Opener call={call} />
        </span>
      </span>
      <span className="line dim">
        {record?.user_id !== undefined && <Exact text={record.user_id} />}
        <TenantTag tenant={record?.tenant} />
        {record?.duration_ms !== undefined && <span>{formatDuration(record.duration_ms)}</span>}
        {record && <Exact text={explainRecord(record)} />}
      </span>
    </>
  )
}

/** The latest record of a call says how it stands. */
function recordOf({ records }: CallRow): AuditRecord | undefined {
  return records.at(-1)
}

/** The time of a call opens it. */
function Opener({ call: { id, startedAt } }: { call: CallRow }): ReactElement {
  const time = formatTime(Date.parse(startedAt), Date.now())
  return (
    <a
      className="opener"
      data-focus
      data-call={id}
      href={callLink(id)}
      title={startedAt}
      aria-label={`${time} call ${id}`}
    >
      <time dateTime={startedAt}>{time}</time>
    </a>
  )
}

/** Returns the current address with the call added, so that the filters stay. */
function callLink(id: string): string {
  const [, query = ''] = location.hash.split('?')
  const choices = new URLSearchParams(query)
  choices.set('open', id)
  return `#/calls?${choices.toString()}`
}

function Choice({ name, text, choose }: { name: string; text: string | undefined; choose: Choose }): ReactElement {
  if (text === undefined) return <span className="dim">–</span>
  return (
    <button type="button" className="choice" title={`Filter by this ${name}`} onClick={() => choose({ [name]: text })}>
      <Exact text={text} />
    </button>
  )
}
