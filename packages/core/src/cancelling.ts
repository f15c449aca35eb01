/**
 * Says whether something is still wanted, and when it no longer is.
 *
 * An `AbortSignal` says the same (see `toCancelling`), but making one and listening to it costs more
 * than the rest of a call.
 */
export interface Cancelling {
  readonly aborted: boolean
  readonly reason: unknown
  /** Calls the listener at the abort, once. Gives a function that takes the listener back. */
  onAbort(listener: () => void): () => void
}

export interface Canceller extends Cancelling {
  /** Only the first call counts. */
  abort(reason: unknown): void
}

export function createCanceller(): Canceller {
  const listeners = new Set<() => void>()
  let stopped: { reason: unknown } | undefined
  return {
    get aborted() {
      return stopped !== undefined
    },
    get reason() {
      return stopped?.reason
    },
    onAbort(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    abort(reason) {
      if (stopped) return
      stopped = { reason }
      for (const listener of listeners) listener()
      listeners.clear()
    },
  }
}

export function toCancelling(signal: AbortSignal | Cancelling): Cancelling {
  if (!('addEventListener' in signal)) return signal
  return {
    get aborted() {
      return signal.aborted
    },
    get reason(): unknown {
      return signal.reason
    },
    onAbort(listener) {
      signal.addEventListener('abort', listener, { once: true })
      return () => signal.removeEventListener('abort', listener)
    },
  }
}
