import type { Caller } from '@toolgate/core'
import type { Lease, LockOptions, SessionLock } from '@toolgate/core/stores'
import { sessionKeyOf } from '../pause/state.ts'

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

/** What ends a run before its time: its host's signal, its own budget of time, or whoever reads its stream. */
export interface Stopping {
  readonly signal: AbortSignal
  /** Whether it was the time. */
  readonly isLate: boolean
  abort(reason: unknown): void
  /** Lets go of the host's signal and of the timer. */
  close(): void
}

/** A timer takes no more. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createStopping(given: AbortSignal | undefined): Stopping & { endAfter(ms: number): void } {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isLate = false
  // Not `AbortSignal.any`: a host's signal may outlive any number of runs, and keeps what follows it.
  const follow = () => controller.abort(given?.reason)
  given?.addEventListener('abort', follow, { once: true })
  if (given?.aborted) follow()
  return {
    signal: controller.signal,
    get isLate() {
      return isLate
    },
    abort: (reason) => controller.abort(reason),
    endAfter(ms) {
      if (ms > MAX_TIMER_MS) return
      timer = setTimeout(() => {
        isLate = !controller.signal.aborted
        controller.abort(new DOMException('the time that the run may take is over', 'TimeoutError'))
      }, ms)
    },
    close() {
      clearTimeout(timer)
      given?.removeEventListener('abort', follow)
    },
  }
}

/** Waits for what may never answer, such as a store, no longer than until the signal aborts. @throws the signal's reason */
export async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work(), aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
