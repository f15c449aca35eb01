import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactElement, type ReactNode, useEffect, useMemo, useRef } from 'react'
import { usePlace } from '../hooks.ts'
import { moveByKeys } from '../row-keys.ts'
import { classOf, type Column } from './cells.tsx'

interface WindowedTableProps<Row> {
  readonly rows: readonly Row[]
  readonly caption: string
  /** The columns. A new list renders all rows again. */
  readonly columns: readonly Column<Row>[]
  readonly className?: string
  readonly keyOf: (row: Row) => string | number
  /** Renders the only cell of a row on a narrow screen. A new function renders all rows again. */
  readonly narrow: (row: Row) => ReactNode
  /** Called when the list is scrolled near its end. */
  readonly onEnd?: (() => void) | undefined
  /** The number of rows before the end at which `onEnd` is called. Default 50. */
  readonly endRows?: number
}

const WIDE_PX = 33
const NARROW_PX = 60
/** A narrower table shows each row as two lines. */
const LEAST_PX = 620

/** A table that scrolls with the page. It renders only the rows near the screen; arrow keys move between them. */
export function WindowedTable<Row>(props: WindowedTableProps<Row>): ReactElement {
  const { rows: all, caption, className = '', keyOf, narrow, onEnd, endRows = 50 } = props
  const body = useRef<HTMLTableElement>(null)
  const { top, width } = usePlace(body)
  const isNarrow = width < LEAST_PX
  const columns = useFitting(props.columns, width)
  const rows = useWindowVirtualizer({
    count: all.length,
    estimateSize: () => (isNarrow ? NARROW_PX : WIDE_PX),
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: 100,
    getItemKey: (i) => {
      const row = all[i]
      return row === undefined ? i : keyOf(row)
    },
  })
  useEffect(() => rows.measure(), [rows, isNarrow, columns])
  const items = rows.getVirtualItems()
  const last = items.at(-1)?.index ?? -1
  useEffect(() => {
    if (last >= all.length - endRows) onEnd?.()
  }, [last, all.length, onEnd, endRows])
  // Rows contain links to the current address, and omit today's date.
  const context = `${location.hash} ${new Date().toDateString()}`
  const before = items[0] ? items[0].start - top : 0
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top)
  return (
    <table
      ref={body}
      className={`records ${className}${isNarrow ? ' narrow' : ''}`.replace('  ', ' ')}
      aria-rowcount={all.length + 1}
      onKeyDown={(event) => moveByKeys(event, rows)}
    >
      <caption className="unseen">{caption}</caption>
      <thead className={isNarrow ? 'unseen' : undefined}>
        <tr aria-rowindex={1}>
          {(isNarrow ? columns.slice(0, 1) : columns).map((column) => (
            <th key={column.name} scope="col" className={classOf(column)} style={{ width: column.width }}>
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {before > 0 && <tr className="spacer" aria-hidden="true" style={{ height: before }} />}
        {items.map(({ index }) => {
          const row = all[index]
          return (
            row !== undefined && (
              <tr
                key={keyOf(row)}
                ref={rows.measureElement}
                data-index={index}
                aria-rowindex={index + 2}
                className="record"
              >
                <Cells row={row} columns={columns} narrow={isNarrow ? narrow : undefined} context={context} />
              </tr>
            )
          )
        })}
        {after > 0 && <tr className="spacer" aria-hidden="true" style={{ height: after }} />}
      </tbody>
    </table>
  )
}

/** Returns the columns that a table of this width has room for. The list stays the same while it has the same columns. */
function useFitting<Row>(columns: readonly Column<Row>[], width: number): readonly Column<Row>[] {
  const names = columns.filter(({ from = 0 }) => width >= from).map(({ name }) => name)
  return useMemo(() => columns.filter(({ name }) => names.includes(name)), [columns, names.join('\n')])
}

interface CellsProps<Row> extends Pick<WindowedTableProps<Row>, 'columns'> {
  readonly row: Row
  /** Renders a row's only cell. Absent on a wide screen. */
  readonly narrow: ((row: Row) => ReactNode) | undefined
  /** Other values that the cells depend on. */
  readonly context: string
}

/** Renders the cells of a row. New rows move the others without rendering their cells again. */
const Cells = memo(function Cells({ row, columns, narrow }) {
  if (narrow) return <td>{narrow(row)}</td>
  return columns.map((column) => (
    <td key={column.name} className={classOf(column, row)}>
      {column.cell(row)}
    </td>
  ))
}) as <Row>(props: CellsProps<Row>) => ReactElement
