import type { ReactElement } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { CALL_LOOKS } from '../states.ts'
import { formatTime } from '../format.ts'
import type { AuditRecord, CallRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Choice, type Column, Duration, Opener, TwoLines, Why } from './cells.tsx'
import { Exact } from './exact.tsx'
import { WhoAndWhy } from './record-table.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { At } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

interface CallTableProps {
  readonly calls: readonly CallRow[]
  /** Called when the list is scrolled near its end. */
  readonly onEnd: () => void
}

/** The table of all loaded calls. */
export function CallTable({ calls, onEnd }: CallTableProps): ReactElement {
  return (
    <WindowedTable
      rows={calls}
      caption="Calls, newest first"
      columns={COLUMNS}
      keyOf={({ seq }) => seq}
      narrow={narrow}
      onEnd={onEnd}
    />
  )
}

const COLUMNS: readonly Column<CallRow>[] = [
  { name: 'Time', width: '7.5rem', cell: (call) => <Time call={call} /> },
  { name: 'Outcome', width: '9rem', cell: (call) => <OutcomeBadge call={call} /> },
  {
    name: 'Tool',
    width: '20%',
    className: 'id wraps',
    cell: (call) => <Choice name="tool" text={recordOf(call)?.tool} />,
  },
  {
    name: 'User',
    width: '14%',
    className: 'wraps',
    cell: (call) => (
      <>
        <Choice name="user" text={recordOf(call)?.user_id} /> <TenantTag tenant={recordOf(call)?.tenant} />
      </>
    ),
  },
  { name: 'Why', className: 'wraps', cell: (call) => <Why text={whyOf(call)} /> },
  { name: 'Records', width: '5.5rem', from: 1050, isNumber: true, cell: ({ records }) => records.length },
  {
    name: 'Duration',
    width: '5.5rem',
    from: 850,
    isNumber: true,
    cell: (call) => <Duration ms={recordOf(call)?.duration_ms} />,
  },
]

function narrow(call: CallRow): ReactElement {
  const record = recordOf(call)
  return (
    <TwoLines
      first={
        <>
          <OutcomeBadge call={call} />
          {record?.tool !== undefined && <Exact text={record.tool} className="id" />}
        </>
      }
      end={<Time call={call} />}
      second={record && <WhoAndWhy record={record} />}
    />
  )
}

/** Returns the latest record of a call, which has its state. */
function recordOf({ records }: CallRow): AuditRecord | undefined {
  return records.at(-1)
}

function whyOf(call: CallRow): string {
  const record = recordOf(call)
  return record ? explainRecord(record) : ''
}

function OutcomeBadge({ call: { outcome } }: { call: CallRow }): ReactElement {
  return <Badge word={outcome} look={CALL_LOOKS[outcome]} />
}

/** Shows the time of a call. A press opens the call. */
function Time({ call: { id, startedAt } }: { call: CallRow }): ReactElement {
  const time = formatTime(Date.parse(startedAt), Date.now())
  return (
    <Opener id={id} label={`${time} call ${id}`}>
      <At at={startedAt} />
    </Opener>
  )
}
