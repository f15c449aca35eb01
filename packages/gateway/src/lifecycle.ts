import { endsWithin } from '@toolgate/core/internal'

/** How long answers may still be written after the port is closed. */
const ANSWER_MS = 250

type Step = () => Promise<void> | void

/** Closes what a gateway has opened. */
export class Lifecycle {
  /** Resolves when the last answer on the port has ended. */
  readonly closePort: () => Promise<void>
  readonly #onFault: (error: unknown) => void
  readonly #closers: Step[] = []
  #drain: () => Promise<void> = async () => {}
  #isStopping = false

  constructor(closePort: () => Promise<void>, onFault: (error: unknown) => void) {
    this.closePort = closePort
    this.#onFault = onFault
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Adds a step to closing. Steps run in reverse order. */
  onClose(step: Step): void {
    this.#closers.push(step)
  }

  /** Sets the work that is awaited before anything is closed. */
  onDrain(drain: () => Promise<void>): void {
    this.#drain = drain
  }

  /** Closes the port first, so that nothing new begins. Pending answers get a moment. */
  readonly close = once(async (): Promise<void> => {
    this.#isStopping = true
    await this.#drain()
    const portClosed = this.#safely(this.closePort)
    await endsWithin(portClosed, ANSWER_MS)
    for (const step of this.#closers.toReversed()) await this.#safely(step)
    await portClosed
  })

  async #safely(step: Step): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#onFault(error)
    }
  }
}

/** Returns a function that makes its value at the first call, and returns the same value at each later call. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
