import { endsWithin } from '@toolgate/values'

/** How long pending answers may be written after the port is closed. */
const ANSWER_MS = 250

type CloseStep = () => Promise<void> | void

/** Closes everything that a gateway has opened. */
export class Lifecycle {
  /** Resolves when the last answer on the port has ended. */
  readonly closePort: () => Promise<void>
  /** Whether the gateway is about to stop. It still accepts calls, but load balancers are told. */
  isLeaving = false
  isStopping = false
  readonly #onFault: (error: unknown) => void
  readonly #closers: CloseStep[] = []
  #announce: () => Promise<void> | void = () => {}
  #drain: () => Promise<void> = async () => {}

  constructor(closePort: () => Promise<void>, onFault: (error: unknown) => void) {
    this.closePort = closePort
    this.#onFault = onFault
  }

  /** Sets the function that gives load balancers time to stop sending requests, before any request is refused. */
  onAnnounce(announce: () => Promise<void>): void {
    this.#announce = announce
  }

  /** Adds a step to closing. Steps run in reverse order. */
  onClose(step: CloseStep): void {
    this.#closers.push(step)
  }

  /** Sets the work that is awaited before anything is closed. */
  onDrain(drain: () => Promise<void>): void {
    this.#drain = drain
  }

  /** Closes the port first, so that nothing new begins. Pending answers get a short time. */
  readonly close = once(async (): Promise<void> => {
    this.isLeaving = true
    await this.#announce()
    this.isStopping = true
    await this.#drain()
    const portClosed = this.#safely(this.closePort)
    await endsWithin(portClosed, ANSWER_MS)
    for (const step of this.#closers.toReversed()) await this.#safely(step)
    await portClosed
  })

  async #safely(step: CloseStep): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#onFault(error)
    }
  }
}

/** Returns a function that creates its value at the first call, and returns the same value at each later call. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
