import type { Caller } from '../ports/caller.ts'
import type { Tool } from '../tools/tool.ts'
import { callAll, type Canceller, type Cancelling, createCanceller } from '@toolgate/values'
import type { MaybePromise } from '../ports/ports.ts'

/** A call under way that can be stopped. */
export interface LiveCall {
  readonly caller: Caller
  readonly tool: Tool
  stop(reason: unknown): void
  /** The neighbours in the list of live calls. */
  before: LiveCall | undefined
  after: LiveCall | undefined
}

/** The calls that wait or run. Adding and removing a call costs a few assignments. */
export interface LiveCalls {
  add(call: LiveCall): void
  remove(call: LiveCall): void
  /** Returns how many calls pass a test. */
  count(test: (call: LiveCall) => boolean): number
  /** Stops the calls for which `reasonOf` returns a reason. */
  stopWhere(reasonOf: (call: LiveCall) => unknown): void
  /** Counts an attempt that begins. */
  begin(): void
  /** Counts an attempt that has written its terminal record. */
  end(): void
  /** Whether new calls are refused. */
  readonly isClosed: boolean
  /** Whether any attempt has begun yet. */
  readonly hasBegun: boolean
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>
  /** Stops all calls, also later ones. Resolves when each attempt has written its terminal record. */
  close(reason: unknown): Promise<void>
}

export function createLiveCalls(): LiveCalls {
  return new LinkedCalls()
}

class LinkedCalls implements LiveCalls {
  isClosed = false
  hasBegun = false
  #first: LiveCall | undefined
  #attempts = 0
  #idle: PromiseWithResolvers<void> | undefined
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers()
  #reason: unknown

  add(call: LiveCall): void {
    call.after = this.#first
    if (this.#first) this.#first.before = call
    this.#first = call
    // The call was admitted right before the closing. It is stopped in a microtask, as it cannot be removed yet.
    if (this.isClosed) queueMicrotask(() => call.stop(this.#reason))
  }

  remove(call: LiveCall): void {
    const { before, after } = call
    if (before) before.after = after
    else if (this.#first === call) this.#first = after
    if (after) after.before = before
    call.before = undefined
    call.after = undefined
  }

  count(test: (call: LiveCall) => boolean): number {
    let count = 0
    for (let call = this.#first; call; call = call.after) if (test(call)) count++
    return count
  }

  stopWhere(reasonOf: (call: LiveCall) => unknown): void {
    // A copy, because stopping a call removes it.
    const calls: LiveCall[] = []
    for (let call = this.#first; call; call = call.after) calls.push(call)
    for (const call of calls) {
      const reason = reasonOf(call)
      if (reason !== undefined) call.stop(reason)
    }
  }

  begin(): void {
    this.#attempts++
    this.hasBegun = true
  }

  end(): void {
    this.#attempts--
    if (this.#attempts > 0) return
    this.#idle?.resolve()
    this.#idle = undefined
    if (this.isClosed) this.#ended.resolve()
  }

  idle(): Promise<void> {
    return this.#attempts === 0 ? Promise.resolve() : (this.#idle ??= Promise.withResolvers()).promise
  }

  close(reason: unknown): Promise<void> {
    if (!this.isClosed) {
      this.isClosed = true
      this.#reason = reason
      if (this.#attempts === 0) this.#ended.resolve()
      this.stopWhere(() => reason)
    }
    return this.#ended.promise
  }
}

/** What a call needs in order to wait. */
interface Waiting {
  readonly view: { readonly caller: Caller }
  readonly ports: { readonly live: LiveCalls }
  readonly cancelling: Cancelling | undefined
}

/**
 * Waits for a result until the caller leaves, a halt stops the call, or the gate closes.
 *
 * `start` may answer synchronously. Its `cancelling` aborts when the wait is over.
 */
export function waitWhile<T>(
  attempt: Waiting,
  tool: Tool,
  start: (cancelling: Cancelling) => MaybePromise<T>,
): MaybePromise<T> {
  const waiting = new CancellableWait(attempt, tool)
  const answer = start(waiting)
  return answer instanceof Promise ? waiting.until(answer) : answer
}

/** Creates its canceller on demand, as a synchronous answer needs none. */
class CancellableWait implements LiveCall, Cancelling {
  readonly caller: Caller
  readonly tool: Tool
  before: LiveCall | undefined
  after: LiveCall | undefined
  readonly #attempt: Waiting
  #canceller: Canceller | undefined

  constructor(attempt: Waiting, tool: Tool) {
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
      // An error of `unwatch` must not lose the answer, which may be a slot.
      if (unwatch) callAll([unwatch])
      ports.live.remove(this)
    }
  }

  #watch(cancelling: Cancelling): (() => void) | undefined {
    try {
      return cancelling.onAbort(() => this.stop(cancelling.reason))
    } catch (error) {
      // A caller whose leaving cannot be watched counts as gone, so that the wait still ends.
      this.stop(error)
      return undefined
    }
  }
}
