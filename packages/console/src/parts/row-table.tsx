import { type ReactElement, type ReactNode, useRef, useState } from 'react'
import { formatNumber } from '../format.ts'
import { usePlace } from '../hooks.ts'
import { moveByKeys } from '../row-keys.ts'
import { classOf, type Column } from './cells.tsx'

interface RowTableProps<Row> {
  /** The name of the region, which scrolls on its own if it is too wide. */
  readonly label: string
  readonly caption: string
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, i: number) => string | number
  /**
   * The columns. The first one names the row. On a narrow screen each row is a card that also contains the other
   * columns' names.
   */
  readonly columns: readonly Column<Row>[]
  /** A last column of buttons. Its name is for screen readers. */
  readonly actions?: { readonly name: string; readonly cell: (row: Row) => ReactNode }
  /** Whether a row no longer works. */
  readonly isOff?: (row: Row) => boolean
  /** Whether the cells of a card are beside each other. */
  readonly isCompact?: boolean
}

/** The number of rows at first, and of those that each press adds. */
const PAGE = 100
/** A narrower table shows each row as a card. A compact one has numbers in most columns. */
const CARDS_PX = 640
const COMPACT_CARDS_PX = 400

/** A table whose rows are not sorted. It shows the first hundred rows, and more on request. */
export function RowTable<Row>(props: RowTableProps<Row>): ReactElement {
  const { label, caption, rows, keyOf, columns, actions, isOff, isCompact = false } = props
  const [shown, setShown] = useState(PAGE)
  const box = useRef<HTMLDivElement>(null)
  const isNarrow = usePlace(box).width < (isCompact ? COMPACT_CARDS_PX : CARDS_PX)
  const rest = rows.length - shown
  return (
    <>
      <div ref={box} className="card keys-box" tabIndex={0} role="region" aria-label={label}>
        <table
          className={`keys${isCompact ? ' count' : ''}${isNarrow ? ' cards' : ''}`}
          aria-rowcount={rows.length + 1}
          // All rows are rendered, so none is scrolled to.
          onKeyDown={(event) => moveByKeys(event, { options: { count: rows.length }, scrollToIndex() {} })}
        >
          <caption className="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.name} scope="col" className={classOf(column)} style={{ width: column.width }}>
                  {column.name}
                </th>
              ))}
              {actions && (
                <th scope="col" className="act">
                  <span className="unseen">{actions.name}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row, i) => (
              <tr key={keyOf(row, i)} data-index={i} className={isOff?.(row) ? 'off' : undefined}>
                <Cells row={row} columns={columns} />
                {actions && <td className="act">{actions.cell(row)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rest > 0 && (
        <button type="button" className="more" onClick={() => setShown(shown + PAGE)}>
          Show {formatNumber(Math.min(PAGE, rest))} more of {formatNumber(rest)}
        </button>
      )}
    </>
  )
}

function Cells<Row>({ row, columns: [head, ...columns] }: { row: Row; columns: readonly Column<Row>[] }): ReactElement {
  return (
    <>
      <th scope="row">{head?.cell(row)}</th>
      {columns.map((column) => (
        <td key={column.name} data-label={column.name} className={classOf(column, row)}>
          {column.cell(row)}
        </td>
      ))}
    </>
  )
}
