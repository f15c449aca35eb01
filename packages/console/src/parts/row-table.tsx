import type { ReactElement, ReactNode } from 'react'

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

/** A short table: all rows on the page, none sorted. */
export function RowTable({
  label,
  caption,
  columns,
  numbers = [],
  actions,
  className = 'keys',
  children,
}: RowTableProps): ReactElement {
  return (
    <div className="keys-box" tabIndex={0} role="region" aria-label={label}>
      <table className={className}>
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
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
