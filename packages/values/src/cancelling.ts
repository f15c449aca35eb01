/**
 * Reports whether work was cancelled, and notifies listeners when it is.
 *
 * An `AbortSignal` does the same (see `toCancelling`), but creating one and listening to it costs more
 * than the rest of a call.
 */
export interface Cancelling {
  readonly aborted: boolean
  readonly reason: unknown
  /** Calls the listener once, at the abort. Returns a function that removes the listener. */
  onAbort(listener: () => void): () => void
}

export interface Canceller extends Cancelling {
  /** Only the first call counts. */
  abort(reason: unknown): void
}

export function createCanceller(): Canceller {
  return new OwnCanceller()
}

/** Calls each listener. One that throws does not stop the others. */
export function callAll(listeners: readonly (() => void)[]): void {
  for (const listener of listeners) {
    try {
      listener()
    } catch {
      // The event has happened; a failing listener cannot change that.
    }
  }
}

export function toCancelling(signal: AbortSignal | Cancelling): Cancelling {
  return 'addEventListener' in signal ? new SignalCancelling(signal) : signal
}

// Classes, because an object literal with getters costs a hidden class for each call.

class OwnCanceller implements Canceller {
  #stopped: { reason: unknown } | undefined
  #listeners: (() => void)[] = []

  get aborted(): boolean {
    return this.#stopped !== undefined
  }

  get reason(): unknown {
    return this.#stopped?.reason
  }

  onAbort(listener: () => void): () => void {
    this.#listeners.push(listener)
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener)
    }
  }

  abort(reason: unknown): void {
    if (this.#stopped) return
    this.#stopped = { reason }
    callAll(this.#listeners)
    this.#listeners = []
  }
}

class SignalCancelling implements Cancelling {
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  get aborted(): boolean {
    return this.#signal.aborted
  }

  get reason(): unknown {
    return this.#signal.reason
  }

  onAbort(listener: () => void): () => void {
    this.#signal.addEventListener('abort', listener, { once: true })
    return () => this.#signal.removeEventListener('abort', listener)
  }
}
