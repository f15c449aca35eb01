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
  return new OwnCanceller()
}

/** Calls each listener; what one throws is its own affair, and the others are still told. */
export function callAll(listeners: readonly (() => void)[]): void {
  for (const listener of listeners) {
    try {
      listener()
    } catch {
      // A listener has nobody to answer to: what it was told of has happened.
    }
  }
}

export function toCancelling(signal: AbortSignal | Cancelling): Cancelling {
  return 'addEventListener' in signal ? new SignalCancelling(signal) : signal
}

// Classes, as a literal with getters costs a hidden class of its own for each call.

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
