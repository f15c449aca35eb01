import { type ReactElement, useSyncExternalStore } from 'react'

let announced = ''
const listeners = new Set<() => void>()

/** Announces a text to screen readers, after the current announcement. */
export function announce(text: string): void {
  // Screen readers announce only a changed text.
  announced = text === announced ? `${text}\u00a0` : text
  for (const listener of listeners) listener()
}

/** The live region of {@link announce}. */
export function Announcer(): ReactElement {
  const text = useSyncExternalStore(subscribe, () => announced)
  return (
    <p className="unseen" role="status" aria-live="polite">
      {text}
    </p>
  )
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
