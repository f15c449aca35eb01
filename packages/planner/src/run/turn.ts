import type { Caller } from '@toolgate/core'
import type { Fence, Lease, LockOptions, SessionLock } from '@toolgate/core/stores'
import { sessionKeyOf } from '../pause/state.ts'

/** A run's turn in its session. */
export interface Turn {
  /** A token for each write of the run: a write after the turn was lost is refused. Absent if a turn cannot be lost. */
  readonly fence: Fence | undefined
  /** Ends the turn. Further calls do nothing. A fault of the lock is reported to the host, and changes nothing. */
  end(): Promise<void>
}

interface TurnOptions extends LockOptions {
  readonly onFault: (error: unknown) => void
  /** Called when the turn is lost before its end: another run of the session may begin. */
  readonly onLost: (reason: unknown) => void
}

/**
 * Waits for a run's turn in its session: the runs of one session run in order. A run without a session does not wait.
 *
 * @throws the signal's reason if it aborts first; {@link ToolgateError} `lock_timeout` after `deadlineMs`
 */
export async function takeTurn(
  sessions: SessionLock,
  caller: Caller,
  { onFault, onLost, ...options }: TurnOptions,
): Promise<Turn> {
  const key = sessionKeyOf(caller)
  if (key === undefined) {
    if (options.signal?.aborted) throw options.signal.reason
    return NO_TURN
  }
  const lease: Lease = await sessions.acquire(key, options)
  const { lost } = lease
  const lose = () => onLost(lost?.reason)
  lost?.addEventListener('abort', lose, { once: true })
  if (lost?.aborted) lose()
  let ended = false
  return {
    fence: lost && { session: key, fencingToken: lease.fencingToken },
    async end() {
      if (ended) return
      ended = true
      lost?.removeEventListener('abort', lose)
      try {
        await lease.release()
      } catch (error) {
        onFault(error)
      }
    },
  }
}

const NO_TURN: Turn = { fence: undefined, end: () => Promise.resolve() }

/** The reasons that end a run early: its host's signal, its time budget, or the reader of its stream. */
export interface StoppingTurn {
  readonly signal: AbortSignal
  /** Whether the time budget ended the run. */
  readonly isLate: boolean
  abort(reason: unknown): void
  /** Releases the host's signal and the timer. */
  close(): void
}

/** The longest delay of a timer, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createStopping(given: AbortSignal | undefined): StoppingTurn & { endAfter(ms: number): void } {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isLate = false
  // `AbortSignal.any` does not serve here: a host's signal may outlive any number of runs, and would keep its followers
  // in memory.
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

/** Waits for work that may never end, such as a store's, until the signal aborts. @throws the signal's reason */
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
