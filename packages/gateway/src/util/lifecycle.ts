import { endsWithin } from '@toolgate/values'

/** How long answers may still be written after the port is closed. */
const ANSWER_MS = 250

type Step = () => Promise<void> | void

/** Closes what a gateway has opened. */
export class Lifecycle {
  /** Resolves when the last answer on the port has ended. */
  readonly closePort: () => Promise<void>
  readonly #onFault: (error: unknown) => void
  readonly #closers: Step[] = []
  #announce: () => Promise<void> | void = () => {}
  #drain: () => Promise<void> = async () => {}
  #isLeaving = false
  #isStopping = false

  constructor(closePort: () => Promise<void>, onFault: (error: unknown) => void) {
    this.closePort = closePort
    this.#onFault = onFault
  }

  /** It is about to stop, and still takes calls: load balancers are told. */
  get isLeaving(): boolean {
    return this.#isLeaving
  }

  get isStopping(): boolean {
    return this.#isStopping
  }

  /** Sets the time in which load balancers stop sending requests, before any is refused. */
  onAnnounce(announce: () => Promise<void>): void {
    this.#announce = announce
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
    this.#isLeaving = true
    await this.#announce()
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
