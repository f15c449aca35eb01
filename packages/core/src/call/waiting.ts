import type { Caller } from '../caller.ts'
import { callAll, type Canceller, type Cancelling, createCanceller } from '../util/cancelling.ts'
import type { MaybePromise } from '../ports.ts'
import type { Tool } from '../tools/tool.ts'
import type { Attempt } from './attempt.ts'
import type { LiveCall } from './live.ts'

/**
 * Waits for something that the caller's leaving, a halt and the closing of the gate end.
 *
 * `start` may answer at once; what it is given tells when the wait is over.
 */
export function waitWhile<T>(
  attempt: Attempt,
  tool: Tool,
  start: (cancelling: Cancelling) => MaybePromise<T>,
): MaybePromise<T> {
  const waiting = new WaitingCall(attempt, tool)
  const answer = start(waiting)
  return answer instanceof Promise ? waiting.until(answer) : answer
}

/** Makes its canceller when it is asked for one: what answers at once needs none. */
class WaitingCall implements LiveCall, Cancelling {
  readonly caller: Caller
  readonly tool: Tool
  before: LiveCall | undefined
  after: LiveCall | undefined
  readonly #attempt: Attempt
  #canceller: Canceller | undefined

  constructor(attempt: Attempt, tool: Tool) {
    this.caller = attempt.view.caller
    this.tool = tool
    this.#attempt = attempt
  }

  get aborted(): boolean {
    return this.#canceller?.aborted === true || this.#attempt.cancelling?.aborted === true
  }

  get reason(): unknown {
    return this.#canceller?.aborted ? this.#canceller.reason : this.#attempt.cancelling?.reason
  }

  onAbort(listener: () => void): () => void {
    this.#canceller ??= createCanceller()
    return this.#canceller.onAbort(listener)
  }

  stop(reason: unknown): void {
    this.#canceller ??= createCanceller()
    this.#canceller.abort(reason)
  }

  async until<T>(answer: Promise<T>): Promise<T> {
    const { ports, cancelling } = this.#attempt
    ports.live.add(this)
    const unwatch = cancelling && this.#watch(cancelling)
    try {
      return await answer
    } finally {
      // What it says of this is not to lose the answer, which may be a slot.
      if (unwatch) callAll([unwatch])
      ports.live.remove(this)
    }
  }

  #watch(cancelling: Cancelling): (() => void) | undefined {
    try {
      return cancelling.onAbort(() => this.stop(cancelling.reason))
    } catch (error) {
      // Whoever cannot be heard leaving is taken to have left: what it waits for still ends.
      this.stop(error)
      return undefined
    }
  }
}
