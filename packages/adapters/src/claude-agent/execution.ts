import { isDeepStrictEqual } from 'node:util'
import { type Cancelling, createCanceller } from '@toolgate/core/internal'

/**
 * An execution by the harness, as the gate's door sees it: it begins when the door lets the call through, and ends when
 * the harness says how it went. In between the call counts as running, so that a halt, a deadline and the closing of the
 * gate reach it: all they can do is to stop the whole query.
 */
export class HarnessExecution {
  /** Resolves with the input that is to be run, as the gate has decided it. */
  readonly begun: Promise<unknown>
  readonly cancelling: Cancelling
  readonly #canceller = createCanceller()
  readonly #begun = Promise.withResolvers<unknown>()
  readonly #end = Promise.withResolvers<unknown>()
  readonly #stopQuery: (reason: unknown) => void
  #decided: { readonly input: unknown } | undefined
  #isOver = false

  constructor(stopQuery: (reason: unknown) => void) {
    this.#stopQuery = stopQuery
    this.begun = this.#begun.promise
    this.cancelling = this.#canceller
  }

  get isOpen(): boolean {
    return this.#decided !== undefined && !this.#isOver
  }

  /** Whether this input is the one that the gate has let through. */
  isOf(input: unknown): boolean {
    return this.#decided !== undefined && isDeepStrictEqual(this.#decided.input, input)
  }

  /** What the tool of the gate gives: `gate` says when the gate wants it stopped. */
  begin(input: unknown, gate: Cancelling): Promise<unknown> {
    this.#decided = { input }
    gate.onAbort(() => {
      if (this.#isOver) return
      this.#isOver = true
      this.#stopQuery(gate.reason)
    })
    this.#begun.resolve(input)
    return this.#end.promise
  }

  done(output: unknown): void {
    if (!this.isOpen) return
    this.#isOver = true
    this.#end.resolve(output)
  }

  fail(error: Error): void {
    if (!this.isOpen) return
    this.#isOver = true
    this.#end.reject(error)
  }

  /** Nobody runs it, or nobody will say how it went. */
  abandon(reason: Error): void {
    this.#isOver = true
    this.#canceller.abort(reason)
  }
}
