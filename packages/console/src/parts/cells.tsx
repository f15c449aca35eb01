import type { ReactElement, ReactNode } from 'react'
import { formatAddress, parseAddress, withChoices } from '../address.ts'
import { formatDuration } from '../format.ts'
import { choose } from '../hooks.ts'
import { Exact } from './exact.tsx'

/** A column of a table. */
export interface Column<Row> {
  readonly name: string
  readonly width?: string
  /** The width of the table, in pixels, from which it has room for this column. Default: 0. */
  readonly from?: number
  /** Whether the cells contain numbers, which are aligned to the right. */
  readonly isNumber?: true
  /** The class name of the cells. */
  readonly className?: string | ((row: Row) => string)
  readonly cell: (row: Row) => ReactNode
}

/** Returns the classes of a cell. Without a row: those of the head. */
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
  /** The id of the row in the address. */
  readonly id: string
  readonly choice?: string
  readonly className?: string
  readonly title?: string
  /** The accessible name, if it is not the text. */
  readonly label?: string
  readonly children: ReactNode
}

/** A link that opens a row: beside the list, or over it. It keeps the other choices in the address, such as filters. */
export function Opener({ id, choice = 'open', className = '', title, label, children }: OpenerProps): ReactElement {
  const here = parseAddress(location.hash)
  return (
    <a
      aria-current={here.choices.get(choice) === id ? 'true' : undefined}
      className={`opener ${className}`.trim()}
      data-focus
      data-opens={id}
      href={formatAddress(withChoices(here, { [choice]: id }))}
      title={title}
      aria-label={label}
    >
      {children}
    </a>
  )
}

/** Shows a value. A press filters the list by it. */
export function Choice({ name, text }: { name: string; text: string | undefined }): ReactElement {
  if (text === undefined) return <None />
  return (
    <button type="button" className="choice" title={`Filter by this ${name}`} onClick={() => choose({ [name]: text })}>
      <Exact text={text} />
    </button>
  )
}

/** Shows a text of at most two lines. The row's detail and the title have the whole text. */
export function Why({ text }: { text: string }): ReactElement {
  return (
    <span className="two-lines" title={text === '' ? undefined : text}>
      <Exact text={text} />
    </span>
  )
}

interface TwoLinesProps {
  readonly first: ReactNode
  readonly end: ReactNode
  readonly second: ReactNode
}

/** Shows a row on a narrow screen. */
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
