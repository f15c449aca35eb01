import type { ReactElement } from 'react'
import { useStore } from '../hooks.ts'
import { createStore } from '../store.ts'

const announced = createStore('')

/** Announces a text to screen readers, after the current announcement. */
export function announce(text: string): void {
  // Screen readers announce only a changed text.
  announced.set(text === announced.current ? `${text}\u00a0` : text)
}

/** The live region of {@link announce}. */
export function Announcer(): ReactElement {
  const text = useStore(announced)
  return (
    <p className="unseen" role="status" aria-live="polite">
      {text}
    </p>
  )
}
