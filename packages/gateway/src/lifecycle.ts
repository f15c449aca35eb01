import { endsWithin } from '@toolgate/core/internal'

/** How long answers may take that are being written when the port is closed. */
const ANSWER_MS = 250

type Step = () => Promise<void> | void

/** What a gateway has opened, and how it stops. */
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

  /** What is opened later is closed earlier. */
  onClose(step: Step): void {
    this.#closers.push(step)
  }

  /** Sets what is awaited before anything is closed. */
  onDrain(drain: () => Promise<void>): void {
    this.#drain = drain
  }

  /** The port is closed first, so that nothing new begins. Answers on their way get a moment. */
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
