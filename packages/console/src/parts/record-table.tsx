import { columnVisibilityFeature, createColumnHelper, FlexRender, tableFeatures, useTable } from '@tanstack/react-table'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useEffect, useMemo, useRef } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { formatDuration, formatTime } from '../format.ts'
import { type Choose, useMedia, useTop } from '../hooks.ts'
import { moveByKeys } from '../row-keys.ts'
import type { AuditRecord } from '../wire.ts'
import { EventBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'

export interface RecordTableProps {
  readonly records: readonly AuditRecord[]
  readonly choose: Choose
  /** Called near the end of the list. */
  readonly onEnd: () => void
}

const features = tableFeatures({ columnVisibilityFeature })
const column = createColumnHelper<typeof features, AuditRecord>()
const columns = column.columns([
  column.accessor('ts', { header: 'Time', cell: ({ row }) => <Opener record={row.original} /> }),
  column.accessor('event', { header: 'Event', cell: ({ row }) => <EventBadge record={row.original} /> }),
  column.accessor('tool', {
    header: 'Tool',
    cell: ({ row, table }) => <Choice what="tool" text={row.original.tool} choose={chooseOf(table)} />,
  }),
  column.accessor('user_id', {
    header: 'User',
    cell: ({ row, table }) => (
      <>
        <Choice what="user" text={row.original.user_id} choose={chooseOf(table)} />{' '}
        <TenantTag tenant={row.original.tenant} />
      </>
    ),
  }),
  column.display({ id: 'reason', header: 'Reason', cell: ({ row }) => <Exact text={explainRecord(row.original)} /> }),
  column.accessor('duration_ms', { header: 'Duration', cell: ({ row }) => <Duration record={row.original} /> }),
])
/** On a phone a record is two lines of one cell. */
const narrowColumns = column.columns([
  column.display({ id: 'record', header: 'Record', cell: ({ row }) => <Narrow record={row.original} /> }),
])

const WIDE_PX = 32
const NARROW_PX = 60
const END_ROWS = 200

/**
 * The table of all loaded records. It renders only those on the screen, and the table model holds only these: a model of
 * 100,000 rows would be rebuilt with every new record.
 */
export function RecordTable({ records, choose, onEnd }: RecordTableProps): ReactElement {
  const isNarrow = useMedia('(width < 48rem)')
  const body = useRef<HTMLTableElement>(null)
  const top = useTop(body)
  const rows = useWindowVirtualizer({
    count: records.length,
    estimateSize: () => (isNarrow ? NARROW_PX : WIDE_PX),
    getItemKey: (i) => records[i]?.seq ?? i,
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: 100,
  })
  useEffect(() => rows.measure(), [rows, isNarrow])
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? -1
  const shown = useMemo(() => records.slice(first, last + 1), [records, first, last])
  const meta = useMemo(() => ({ choose }), [choose])
  const table = useTable({
    features,
    columns: isNarrow ? narrowColumns : columns,
    data: shown,
    getRowId: ({ seq }) => String(seq),
    meta,
  })
  useEffect(() => {
    if (last >= records.length - END_ROWS) onEnd()
  }, [last, records.length, onEnd])
  const before = items[0] ? items[0].start - top : 0
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top)
  return (
    <table
      ref={body}
      className={isNarrow ? 'records narrow' : 'records'}
      aria-rowcount={records.length + 1}
      onKeyDown={(event) => moveByKeys(event, rows)}
    >
      <caption className="unseen">Attempts to call a tool, and events of the gate, newest first</caption>
      <thead className={isNarrow ? 'unseen' : undefined}>
        {table.getHeaderGroups().map((group) => (
          <tr key={group.id} aria-rowindex={1}>
            {group.headers.map((header) => (
              <th key={header.id} scope="col" className={`col-${header.column.id}`}>
                <FlexRender header={header} />
              </th>
            ))}
          </tr>
        ))}
      </thead>
      <tbody>
        {before > 0 && <tr className="spacer" aria-hidden="true" style={{ height: before }} />}
        {table.getRowModel().rows.map((row, i) => (
          <tr key={row.id} data-index={first + i} aria-rowindex={first + i + 2} className="record">
            {row.getVisibleCells().map((cell) => (
              <td key={cell.id} className={`col-${cell.column.id}`}>
                <FlexRender cell={cell} />
              </td>
            ))}
          </tr>
        ))}
        {after > 0 && <tr className="spacer" aria-hidden="true" style={{ height: after }} />}
      </tbody>
    </table>
  )
}

function chooseOf(table: { readonly options: { readonly meta?: unknown } }): Choose {
  return (table.options.meta as { readonly choose: Choose }).choose
}

/** The time of a record opens it. */
function Opener({ record: { seq, ts } }: { record: AuditRecord }): ReactElement {
  return (
    <a className="opener" data-focus data-seq={seq} href={recordLink(seq)} title={`${ts}, record ${seq}`}>
      <time dateTime={ts}>{formatTime(Date.parse(ts), Date.now())}</time>
      <span className="unseen"> record {seq}</span>
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

function Narrow({ record }: { record: AuditRecord }): ReactElement {
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
