import * as Dialog from '@radix-ui/react-dialog'
import type { ReactElement, ReactNode } from 'react'
import { choose } from '../hooks.ts'
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

/** Shows a row of a list in a dialog at the side. Escape and a click beside it close it. */
export function Drawer<Row>(props: DrawerProps<Row>): ReactElement {
  const { id, choice = 'open', title, beside, isWide = false, what, row, isUnknown, children } = props
  const close = (): void => choose({ [choice]: '' })
  // If the row is no longer rendered, the page gets the focus.
  const focusOpener = (): void => {
    const opener = document.querySelector<HTMLElement>(`[data-opens="${CSS.escape(id)}"]`)
    const back = opener ?? document.querySelector<HTMLElement>('main')
    back?.focus({ preventScroll: true })
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && close()}>
      <Dialog.Portal>
        <div className="backdrop" onClick={close} aria-hidden="true" />
        <Dialog.Content
          className={isWide ? 'drawer wide' : 'drawer'}
          aria-describedby={undefined}
          onCloseAutoFocus={focusOpener}
        >
          <div className="drawer-head">
            <Dialog.Title className="dialog-title">{title}</Dialog.Title>
            {beside}
            <Dialog.Close className="quiet end">Close</Dialog.Close>
          </div>
          {row !== undefined && children(row)}
          {row === undefined && (isUnknown ? <Empty title={`Unknown ${what}`} /> : <Loading what={`the ${what}`} />)}
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
