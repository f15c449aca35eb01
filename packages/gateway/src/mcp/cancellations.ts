import type { Caller } from '@toolgate/core'
import type { RequestId } from './protocol.ts'

/** A call that a later message may cancel. */
export interface Cancellable {
  readonly signal: AbortSignal
  /** Must be called when the call has ended. */
  readonly end: () => void
}

export interface Cancellations {
  open(caller: Caller, session: string, id: RequestId): Cancellable
  /** Cancels the call of this caller, session and id, if it is under way. */
  cancel(caller: Caller, session: string, id: RequestId): void
}

/**
 * Gives the calls under way, by who makes them.
 *
 * Before MCP 2026-07-28 a call is cancelled by a message of its own, in a request of its own. The session tells
 * apart two clients with one key, whose ids are the same; the caller, a client from another that knows its session.
 */
export function createCancellations(): Cancellations {
  const underWay = new WeakMap<Caller, Map<string, AbortController>>()
  return {
    open(caller, session, id) {
      const calls = underWay.get(caller) ?? new Map<string, AbortController>()
      underWay.set(caller, calls)
      const key = toKey(session, id)
      const controller = new AbortController()
      calls.set(key, controller)
      return {
        signal: controller.signal,
        end() {
          if (calls.get(key) === controller) calls.delete(key)
        },
      }
    },
    cancel(caller, session, id) {
      underWay.get(caller)?.get(toKey(session, id))?.abort(new Error('the client cancelled the call'))
    },
  }
}

/** `1` and `"1"` are two ids. */
function toKey(session: string, id: RequestId): string {
  return JSON.stringify([session, id])
}
