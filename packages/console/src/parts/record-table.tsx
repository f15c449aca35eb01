import type { ReactElement } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { formatDuration, formatExact, formatTime } from '../format.ts'
import type { AuditRecord } from '../wire.ts'
import { EventBadge } from './badges.tsx'
import { Choice, type Column, Duration, Opener, TwoLines, Why } from './cells.tsx'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { At } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

interface RecordTableProps {
  readonly records: readonly AuditRecord[]
  /** Called when the list is scrolled near its end. */
  readonly onEnd: () => void
}

/** The table of all loaded records. */
export function RecordTable({ records, onEnd }: RecordTableProps): ReactElement {
  return (
    <WindowedTable
      rows={records}
      caption="Attempts to call a tool, and events of the gate, newest first"
      columns={COLUMNS}
      keyOf={({ seq }) => seq}
      narrow={narrow}
      onEnd={onEnd}
      endRows={200}
    />
  )
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { name: 'Time', width: '7.5rem', cell: (record) => <Time record={record} /> },
  { name: 'Event', width: '13rem', cell: (record) => <EventBadge record={record} /> },
  { name: 'Tool', width: '20%', className: 'mono wraps', cell: ({ tool }) => <Choice name="tool" text={tool} /> },
  {
    name: 'User',
    width: '14%',
    className: 'wraps',
    cell: ({ user_id: user, tenant }) => (
      <>
        <Choice name="user" text={user} /> <TenantTag tenant={tenant} />
      </>
    ),
  },
  { name: 'Reason', className: 'wraps', cell: (record) => <Why text={explainRecord(record)} /> },
  { name: 'Duration', width: '5.5rem', from: 850, isNumber: true, cell: ({ duration_ms: ms }) => <Duration ms={ms} /> },
]

function narrow(record: AuditRecord): ReactElement {
  const { tool } = record
  return (
    <TwoLines
      first={
        <>
          <EventBadge record={record} />
          {tool !== undefined && <Exact text={tool} className="id" />}
        </>
      }
      end={<Time record={record} />}
      second={<WhoAndWhy record={record} />}
    />
  )
}

/** The second line of a record on a narrow screen. */
export function WhoAndWhy({ record }: { record: AuditRecord }): ReactElement {
  const { user_id: user, tenant, duration_ms: ms } = record
  return (
    <>
      {user !== undefined && <Exact text={user} />}
      <TenantTag tenant={tenant} />
      {ms !== undefined && <span>{formatDuration(ms)}</span>}
      <Exact text={explainRecord(record)} />
    </>
  )
}

/** Shows the time of a record. A press opens the record. */
function Time({ record: { seq, ts } }: { record: AuditRecord }): ReactElement {
  const time = formatTime(Date.parse(ts), Date.now())
  return (
    <Opener
      id={String(seq)}
      choice="record"
      title={`${formatExact(Date.parse(ts))}, record ${seq}`}
      label={`${time} record ${seq}`}
    >
      <At at={ts} />
    </Opener>
  )
}
