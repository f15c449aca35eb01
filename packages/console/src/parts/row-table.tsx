import { Children, type ReactElement, type ReactNode, useState } from 'react'
import { formatNumber } from '../format.ts'

interface RowTableProps {
  /** Names the region, which scrolls on its own where it is too wide. */
  readonly label: string
  readonly caption: string
  readonly columns: readonly string[]
  /** The columns of numbers, which are aligned to the right. */
  readonly numbers?: readonly string[]
  /** Names a last column of buttons, which has no visible head. */
  readonly actions?: string
  readonly className?: string
  /** Its rows. On a narrow screen each is a card, whose cells are named by their `data-label`. */
  readonly children: ReactNode
}

/** How many rows are shown at first, and with each press more. */
const PAGE = 100

/** A table whose rows are not sorted: the first hundred, and more as they are asked for. */
export function RowTable({
  label,
  caption,
  columns,
  numbers = [],
  actions,
  className = 'keys',
  children,
}: RowTableProps): ReactElement {
  const [shown, setShown] = useState(PAGE)
  const rows = Children.toArray(children)
  const rest = rows.length - shown
  return (
    <>
      <div className="keys-box" tabIndex={0} role="region" aria-label={label}>
        <table className={className} aria-rowcount={rows.length + 1}>
          <caption className="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name} scope="col" className={numbers.includes(name) ? 'n' : undefined}>
                  {name}
                </th>
              ))}
              {actions !== undefined && (
                <th scope="col">
                  <span className="unseen">{actions}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>{rows.slice(0, shown)}</tbody>
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
