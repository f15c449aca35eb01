import { type ReactElement, useSyncExternalStore } from 'react'

let said = ''
const listeners = new Set<() => void>()

/** Says something to those who hear the page, when they have finished hearing what is being said. */
export function announce(text: string): void {
  // The same words again are heard only where they differ.
  said = text === said ? `${text}\u00a0` : text
  for (const listener of listeners) listener()
}

/** The one place from which the page speaks by itself. */
export function Announcer(): ReactElement {
  const text = useSyncExternalStore(subscribe, () => said)
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
