import { createColumnHelper, FlexRender, tableFeatures, useTable } from '@tanstack/react-table'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type ReactElement, useMemo, useRef } from 'react'
import { linkTo } from '../address.ts'
import { toSentence } from '../format.ts'
import type { Choose } from '../hooks.ts'
import { type CallerColumn, type MatrixCell, type MatrixRow, toCell } from '../matrix.ts'
import { stateOfGroup } from '../states.ts'
import type { CallersBody } from '../wire.ts'
import { OutcomeBadge, StateBadge } from './badges.tsx'
import { Exact } from './exact.tsx'

type CallerRow = CallersBody['callers'][number]

/** A row of the table: a group, or one of its tools where it is open. */
type Line = { readonly row: MatrixRow; readonly tool?: string }

const LINE_PX = 32

const features = tableFeatures({})
const column = createColumnHelper<typeof features, Line>()

export interface MatrixProps {
  readonly rows: readonly MatrixRow[]
  readonly columns: ReadonlyMap<string, CallerColumn>
  readonly callers: readonly CallerRow[]
  readonly opened: string
  readonly choose: Choose
}

/** Lines of a group that is open may be thousands: those are rendered that are on the screen. */
export function Matrix({ rows, columns, callers, opened, choose }: MatrixProps): ReactElement {
  const lines = useMemo(
    () =>
      rows.flatMap((row): Line[] => [{ row }, ...(row.key === opened ? row.tools.map((tool) => ({ row, tool })) : [])]),
    [rows, opened],
  )
  const defs = useMemo(
    () =>
      column.columns([
        column.display({
          id: 'row',
          header: 'Group',
          cell: ({ row }) => <RowHead line={row.original} opened={opened} choose={choose} />,
        }),
        ...callers.map((caller, i) =>
          column.display({
            id: `caller ${i}`,
            header: () => <CallerHead caller={caller} />,
            cell: ({ row }) => <Cell line={row.original} user={caller.user} column={columns.get(caller.user)} />,
          }),
        ),
      ]),
    [callers, columns, opened, choose],
  )
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 12,
  })
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? -1
  const shown = useMemo(() => lines.slice(first, last + 1), [lines, first, last])
  const table = useTable({
    features,
    columns: defs,
    data: shown,
    getRowId: ({ row, tool }) => `${row.key} ${tool ?? ''}`,
  })
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <div ref={box} className="matrix-box" tabIndex={0} role="region" aria-label="Groups and callers">
      <table
        className="matrix"
        aria-rowcount={lines.length + 1}
        style={{ '--callers': callers.length } as CSSProperties}
      >
        <caption className="unseen">How many tools of each group each caller sees</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col">
                  <FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden="true" style={{ height: before }} />}
          {table.getRowModel().rows.map((row, i) => (
            <tr
              key={row.id}
              ref={virtual.measureElement}
              data-index={first + i}
              aria-rowindex={first + i + 2}
              className={row.original.tool === undefined ? 'group-line' : 'tool-line'}
            >
              {row.getAllCells().map((cell, at) =>
                at === 0 ? (
                  <th key={cell.id} scope="row">
                    <FlexRender cell={cell} />
                  </th>
                ) : (
                  <td key={cell.id}>
                    <FlexRender cell={cell} />
                  </td>
                ),
              )}
            </tr>
          ))}
          {after > 0 && <tr aria-hidden="true" style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  )
}

function CallerHead({ caller: { user, roles, for: kind } }: { caller: CallerRow }): ReactElement {
  return (
    <>
      <a href={linkTo('tools', { as: user })}>
        <Exact text={user} />
      </a>
      <span className="dim sub">
        {kind === 'mcp' ? 'agent' : 'person'}
        {roles.length > 0 && ` · ${roles.join(', ')}`}
      </span>
    </>
  )
}

function RowHead({
  line: { row, tool },
  opened,
  choose,
}: {
  line: Line
  opened: string
  choose: Choose
}): ReactElement {
  if (tool !== undefined) return <Exact text={tool} className="id" />
  const isOpen = row.key === opened
  return (
    <>
      <button
        type="button"
        className="fold"
        aria-expanded={isOpen}
        onClick={() => choose({ open: isOpen ? '' : row.key })}
      >
        {row.name === '' ? 'Without a server' : <Exact text={row.title ?? row.name} />}
      </button>
      {row.group && <StateBadge state={stateOfGroup(row.group)} />}
      {!row.group && row.name !== '' && <span className="dim">in no group</span>}
    </>
  )
}

function Cell({
  line: { row, tool },
  user,
  column: known,
}: {
  line: Line
  user: string
  column: CallerColumn | undefined
}): ReactElement {
  if (!known) return <span className="dim">…</span>
  if (tool !== undefined) {
    const stand = known.tools.get(tool)
    if (!stand) return <span className="dim">–</span>
    return (
      <a href={linkTo('tool', { id: tool, as: user })} title={toSentence(stand.why)}>
        <OutcomeBadge outcome={stand.outcome} />
      </a>
    )
  }
  const cell = toCell(known, row.tools)
  const search = row.group ? `group:${row.name}` : `${row.name}:`
  return (
    <a
      className={`cell ${amountOf(cell)}`}
      href={linkTo('tools', { as: user, q: search })}
      title={toSentence(cell.why)}
    >
      <b>{cell.visible}</b> of {cell.total}
      {cell.asks > 0 && <span className="asks">{cell.asks} ask</span>}
    </a>
  )
}

function amountOf({ visible, total }: MatrixCell): string {
  if (visible === 0) return 'none'
  return visible === total ? 'all' : 'some'
}
