import { type FocusEvent, type KeyboardEvent, type ReactElement, type ReactNode, useEffect, useRef } from 'react'
import { choose, useBeside, useChoices } from '../hooks.ts'
import { isStep } from '../row-keys.ts'

/** How long the focus stays on a row before its detail is shown, in milliseconds. A held arrow key opens none. */
const FOLLOW_MS = 90

interface SplitProps {
  /** The choice in the address that names the open row. */
  readonly choice?: string
  /** The open row. */
  readonly detail: ReactNode
  readonly children: ReactNode
}

/**
 * Shows a list with the open row beside it, on a wide window. While a row is open, the detail follows the keys that
 * move between rows; the right arrow key moves into it. On a narrow window the row is over the list, see {@link Drawer}.
 */
export function Split({ choice = 'open', detail, children }: SplitProps): ReactElement {
  const isBeside = useBeside()
  const isOpen = useChoices()(choice) !== '' && isBeside
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const lastKey = useRef('')
  useEffect(() => () => clearTimeout(timer.current), [])

  function follow(event: FocusEvent<HTMLElement>): void {
    clearTimeout(timer.current)
    const { opens } = event.target.dataset
    if (!isOpen || opens === undefined || !isStep(lastKey.current)) return
    timer.current = setTimeout(() => choose({ [choice]: opens }), FOLLOW_MS)
  }
  function onKey({ key, target, altKey, ctrlKey, metaKey }: KeyboardEvent<HTMLElement>): void {
    lastKey.current = key
    const isRow = (target as HTMLElement).matches('[data-opens]')
    if (isOpen && key === 'ArrowRight' && isRow && !altKey && !ctrlKey && !metaKey)
      document.querySelector<HTMLElement>('.detail')?.focus()
  }
  return (
    <div className={isOpen ? 'split open' : 'split'}>
      <div
        className="split-list"
        onFocus={follow}
        onKeyDownCapture={onKey}
        onPointerDown={() => (lastKey.current = '')}
      >
        {children}
      </div>
      {detail}
    </div>
  )
}
