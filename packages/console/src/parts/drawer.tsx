import * as Dialog from '@radix-ui/react-dialog'
import { type ReactElement, type ReactNode, useEffect, useId, useRef } from 'react'
import { choose, useBeside } from '../hooks.ts'
import { Exact } from './exact.tsx'
import { Empty, Loading } from './panels.tsx'

interface DrawerProps<Row> {
  /** The id of the row's `Opener`, which opened the drawer and gets the focus back. */
  readonly id: string
  /** The choice in the address that names the row. */
  readonly choice?: string
  readonly title: ReactNode
  /** Content beside the title. */
  readonly beside?: ReactNode
  readonly isWide?: boolean
  /** The kind of the opened row, such as `call`. */
  readonly what: string
  /** The row. Absent while it is not loaded. */
  readonly row: Row | undefined
  /** Whether the row was fetched and not found. */
  readonly isUnknown: boolean
  readonly children: (row: Row) => ReactNode
}

/**
 * Shows the open row of a list: beside the list on a wide window, otherwise in a dialog over it. Escape closes it, and
 * the row gets the focus.
 */
export function Drawer<Row>(props: DrawerProps<Row>): ReactElement {
  return useBeside() ? <Beside {...props} /> : <Over {...props} />
}

/** Focuses the row that opened a detail, or the page if the row is no longer rendered. */
function focusOpener(id: string): void {
  const opener = document.querySelector<HTMLElement>(`[data-opens="${CSS.escape(id)}"]`)
  const back = opener ?? document.querySelector<HTMLElement>('main')
  back?.focus({ preventScroll: true })
}

function Beside<Row>({ id, choice = 'open', title, beside, ...content }: DrawerProps<Row>): ReactElement {
  const titleId = useId()
  const close = (): void => {
    choose({ [choice]: '' })
    focusOpener(id)
  }
  useEscape(close)
  return (
    <aside className="card detail" aria-labelledby={titleId} tabIndex={-1}>
      <div className="drawer-head">
        <h2 id={titleId} className="dialog-title">
          {title}
        </h2>
        {beside}
        <button type="button" className="quiet end" onClick={close}>
          Close
        </button>
      </div>
      <Content {...content} />
    </aside>
  )
}

/** Calls a function on Escape, unless a dialog or a list of suggestions is open, which Escape closes first. */
function useEscape(close: () => void): void {
  const latest = useRef(close)
  useEffect(() => {
    latest.current = close
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented) return
      if (document.querySelector('dialog[open], [role=dialog]') === null) latest.current()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

function Content<Row>({
  row,
  isUnknown,
  what,
  children,
}: Pick<DrawerProps<Row>, 'children' | 'isUnknown' | 'row' | 'what'>) {
  if (row !== undefined) return children(row)
  return isUnknown ? <Empty title={`Unknown ${what}`} /> : <Loading what={`the ${what}`} />
}

function Over<Row>({ id, choice = 'open', title, beside, isWide = false, ...content }: DrawerProps<Row>): ReactElement {
  const close = (): void => choose({ [choice]: '' })
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && close()}>
      <Dialog.Portal>
        <div className="backdrop" onClick={close} aria-hidden="true" />
        <Dialog.Content
          className={isWide ? 'drawer wide' : 'drawer'}
          aria-describedby={undefined}
          onCloseAutoFocus={() => focusOpener(id)}
        >
          <div className="drawer-head">
            <Dialog.Title className="dialog-title">{title}</Dialog.Title>
            {beside}
            <Dialog.Close className="quiet end">Close</Dialog.Close>
          </div>
          <Content {...content} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

interface PartProps {
  readonly title: ReactNode
  /** The level of the heading: `h2` on a page, `h3` in a drawer. */
  readonly level?: 'h2' | 'h3'
  readonly children: ReactNode
}

export function Part({ title, level: Heading = 'h3', children }: PartProps): ReactElement {
  return (
    <section className="stack part">
      <Heading>{typeof title === 'string' ? <Exact text={title} /> : title}</Heading>
      {children}
    </section>
  )
}

/** A line of a `dl` of facts. */
export function Fact({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
