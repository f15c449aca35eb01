import type { Caller, Lease, LockOptions, SessionLock } from '@toolgate/core'
import { sessionKeyOf } from './identity.ts'

/** A run's turn in its session. */
export interface Turn {
  /** Ends it; a second time does nothing. What the lock says to that is told to the host, and changes nothing. */
  end(): Promise<void>
}

/**
 * Waits for a run's turn in its session: runs of one session go one after the other, in the order of asking. A run
 * without a session has nothing to wait for.
 *
 * @throws the signal's reason when it aborts before; {@link ToolgateError} `lock_timeout` after `deadlineMs`
 */
export async function takeTurn(
  sessions: SessionLock,
  caller: Caller,
  { onFault, ...options }: LockOptions & { readonly onFault: (error: unknown) => void },
): Promise<Turn> {
  const key = sessionKeyOf(caller)
  if (key === undefined) {
    if (options.signal?.aborted) throw options.signal.reason
    return NO_TURN
  }
  const lease: Lease = await sessions.acquire(key, options)
  let ended = false
  return {
    async end() {
      if (ended) return
      ended = true
      try {
        await lease.release()
      } catch (error) {
        onFault(error)
      }
    },
  }
}

const NO_TURN: Turn = { end: () => Promise.resolve() }
