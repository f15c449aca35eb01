import * as Dialog from '@radix-ui/react-dialog'
import type { ReactElement, ReactNode } from 'react'

interface DrawerProps {
  readonly title: ReactNode
  /** Beside the title. */
  readonly beside?: ReactNode
  readonly isWide?: boolean
  readonly close: () => void
  /** Finds the link that opened it, which gets the focus back. */
  readonly opener: () => HTMLElement | null
  readonly children: ReactNode
}

/** A dialog at the side of a list. Escape and a click beside it close it. */
export function Drawer({ title, beside, isWide = false, close, opener, children }: DrawerProps): ReactElement {
  // Where the row is no longer rendered, the page gets the focus.
  const focusOpener = (): void =>
    (opener() ?? document.querySelector<HTMLElement>('main'))?.focus({ preventScroll: true })
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
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

export function DrawerPart({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <section className="part">
      <h3>{title}</h3>
      {children}
    </section>
  )
}
