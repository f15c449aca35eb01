import type { ReactElement, ReactNode } from 'react'
import { formatAddress, parseAddress, withChoices } from '../address.ts'
import { formatDuration } from '../format.ts'
import { choose } from '../hooks.ts'
import { Exact } from './exact.tsx'

/** A column of a table. */
export interface Column<Row> {
  readonly name: string
  readonly width?: string
  /** Its cells are aligned to the right. */
  readonly isNumber?: true
  /** Of its cells. */
  readonly className?: string | ((row: Row) => string)
  readonly cell: (row: Row) => ReactNode
}

/** Returns the classes of a cell; for a head without its row. */
export function classOf<Row>({ isNumber, className }: Column<Row>, row?: Row): string | undefined {
  const own = row === undefined ? '' : typeof className === 'function' ? className(row) : (className ?? '')
  return `${isNumber ? 'n' : ''} ${own}`.trim() || undefined
}

/** A cell without a value. */
export function None(): ReactElement {
  return <span className="dim">–</span>
}

export function Duration({ ms }: { ms: number | undefined }): ReactElement {
  return ms === undefined ? <None /> : <>{formatDuration(ms)}</>
}

interface OpenerProps {
  /** Names the row in the address. */
  readonly id: string
  readonly choice?: string
  readonly className?: string
  readonly title?: string
  /** The accessible name, if it is not the text. */
  readonly label?: string
  readonly children: ReactNode
}

/** The link that opens a row in a drawer. The other choices of the address stay, so that the filters do. */
export function Opener({ id, choice = 'open', className = '', title, label, children }: OpenerProps): ReactElement {
  return (
    <a
      className={`opener ${className}`.trim()}
      data-focus
      data-opens={id}
      href={formatAddress(withChoices(parseAddress(location.hash), { [choice]: id }))}
      title={title}
      aria-label={label}
    >
      {children}
    </a>
  )
}

/** A value that filters the list by itself when it is pressed. */
export function Choice({ name, text }: { name: string; text: string | undefined }): ReactElement {
  if (text === undefined) return <None />
  return (
    <button type="button" className="choice" title={`Filter by this ${name}`} onClick={() => choose({ [name]: text })}>
      <Exact text={text} />
    </button>
  )
}

interface TwoLinesProps {
  readonly first: ReactNode
  readonly end: ReactNode
  readonly second: ReactNode
}

/** A row on a narrow screen. */
export function TwoLines({ first, end, second }: TwoLinesProps): ReactElement {
  return (
    <>
      <span className="line">
        {first}
        <span className="end">{end}</span>
      </span>
      <span className="line dim">{second}</span>
    </>
  )
}
