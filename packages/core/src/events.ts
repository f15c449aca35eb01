import { catchRejection } from './util/async.ts'
import type { Halt } from './state/halts.ts'
import type { PinEvent } from './pins/notices.ts'
import type { Approval } from './ports.ts'

/** What happens to a gate, for those who show or count it. */
export type GateNotice =
  | { readonly event: 'policy-changed'; readonly policyRevision: number }
  | { readonly event: 'approval-requested' | 'approval-decided'; readonly approval: Approval }
  | { readonly event: 'preferences-changed' }
  | { readonly event: 'halt-set' | 'halt-released'; readonly halt: Halt }
  | { readonly event: 'tool-added' | 'tool-changed' | 'tool-flagged' | 'tool-accepted'; readonly pin: PinEvent }

export interface Events<Event> {
  /** Gives the way to end it. What a listener throws is told to the host and stops nothing. */
  subscribe(listener: (event: Event) => void): () => void
  tell(event: Event): void
}

export function createEvents<Event>(onFault: (error: unknown) => void): Events<Event> {
  const listeners = new Set<(event: Event) => void>()
  return {
    subscribe(listener) {
      // A function of its own, so that one who subscribes twice is told twice and leaves once.
      const own = (event: Event) => listener(event)
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    tell(event) {
      for (const listener of listeners) {
        try {
          catchRejection(listener(event), onFault)
        } catch (error) {
          onFault(error)
        }
      }
    },
  }
}
