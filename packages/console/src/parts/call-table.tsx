import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useEffect, useRef } from 'react'
import { explainRecord } from '../audit-feed.ts'
import { CALL_LOOKS } from '../states.ts'
import { formatDuration, formatTime } from '../format.ts'
import { type Choose, useMedia, useTop } from '../hooks.ts'
import { moveByKeys } from '../row-keys.ts'
import type { AuditRecord, CallRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Exact } from './exact.tsx'

interface CallTableProps {
  readonly calls: readonly CallRow[]
  readonly choose: Choose
  /** Called near the end of the list. */
  readonly onEnd: () => void
}

const WIDE_PX = 32
const NARROW_PX = 60
const END_ROWS = 50

/** The table of all loaded calls. It renders only those near the screen. */
export function CallTable({ calls, choose, onEnd }: CallTableProps): ReactElement {
  const isNarrow = useMedia('(width < 48rem)')
  const body = useRef<HTMLTableElement>(null)
  const top = useTop(body)
  const rows = useWindowVirtualizer({
    count: calls.length,
    estimateSize: () => (isNarrow ? NARROW_PX : WIDE_PX),
    getItemKey: (i) => calls[i]?.seq ?? i,
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: 100,
  })
  useEffect(() => rows.measure(), [rows, isNarrow])
  const items = rows.getVirtualItems()
  const last = items.at(-1)?.index ?? -1
  useEffect(() => {
    if (last >= calls.length - END_ROWS) onEnd()
  }, [last, calls.length, onEnd])
  const before = items[0] ? items[0].start - top : 0
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top)
  return (
    <table
      ref={body}
      className={isNarrow ? 'records calls narrow' : 'records calls'}
      aria-rowcount={calls.length + 1}
      onKeyDown={(event) => moveByKeys(event, rows)}
    >
      <caption className="unseen">Calls, newest first</caption>
      <thead className={isNarrow ? 'unseen' : undefined}>
        <tr aria-rowindex={1}>
          {(isNarrow ? ['Call'] : COLUMNS).map((name) => (
            <th key={name} scope="col" className={`call-${name.toLowerCase()}`}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {before > 0 && <tr className="spacer" aria-hidden="true" style={{ height: before }} />}
        {items.map(({ index }) => {
          const call = calls[index]
          return (
            call && (
              <tr key={call.seq} data-index={index} aria-rowindex={index + 2} className="record">
                {isNarrow ? <Narrow call={call} /> : <Wide call={call} choose={choose} />}
              </tr>
            )
          )
        })}
        {after > 0 && <tr className="spacer" aria-hidden="true" style={{ height: after }} />}
      </tbody>
    </table>
  )
}

const COLUMNS = ['Time', 'Outcome', 'Tool', 'User', 'Why', 'Records', 'Duration'] as const

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
        <Choice name="user" text={record?.user_id} choose={choose} />
      </td>
      <td>{record && <Exact text={explainRecord(record)} />}</td>
      <td className="n">{call.records.length}</td>
      <td className="n">{record?.duration_ms === undefined ? '–' : formatDuration(record.duration_ms)}</td>
    </>
  )
}

function Narrow({ call }: { call: CallRow }): ReactElement {
  const record = recordOf(call)
  return (
    <td>
      <span className="line">
        <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />
        {record?.tool !== undefined && <Exact text={record.tool} className="id" />}
        <span className="end">
          <Opener call={call} />
        </span>
      </span>
      <span className="line dim">
        {record?.user_id !== undefined && <Exact text={record.user_id} />}
        {record?.duration_ms !== undefined && <span>{formatDuration(record.duration_ms)}</span>}
        {record && <Exact text={explainRecord(record)} />}
      </span>
    </td>
  )
}

/** The latest record of a call says how it stands. */
function recordOf({ records }: CallRow): AuditRecord | undefined {
  return records.at(-1)
}

/** The time of a call opens it. */
function Opener({ call: { id, startedAt } }: { call: CallRow }): ReactElement {
  return (
    <a className="opener" data-focus data-call={id} href={callLink(id)} title={startedAt}>
      <time dateTime={startedAt}>{formatTime(Date.parse(startedAt), Date.now())}</time>
      <span className="unseen"> call {id}</span>
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
