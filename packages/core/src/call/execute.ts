import type { Caller } from '../ports/caller.ts'
import {
  callAll,
  type Cancelling,
  type Deadlines,
  isStream,
  isThenable,
  type Timed,
  type Watched,
} from '@toolgate/values'
import type { MaybePromise } from '../ports/ports.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import type { Attempt } from './attempt.ts'
import type { LiveCall, LiveCalls } from './lifetime.ts'
import type { FailureCode } from './outcome.ts'

export interface Execution {
  readonly tool: Tool
  /** Runs instead of the tool's `execute`. */
  readonly instead?: ((input: unknown, call: CallContext) => unknown) | undefined
  readonly input: unknown
  readonly callId: string
  readonly caller: Caller
  readonly cancelling: Cancelling | undefined
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly context?: unknown
  /** On the monotonic clock. */
  readonly startedMs: number
  readonly deadlineMs: number
  /** For tools that find or run other tools for their caller. */
  readonly through?: Through | undefined
}

/** The call that a context belongs to. */
type Through = Attempt

export type Executed =
  | { readonly ok: true; readonly output: unknown; readonly lasting: Lasting | undefined }
  | { readonly ok: false; readonly code: FailureCode; readonly error: unknown }

/** An execution that continues while its answer is streamed. */
export interface Lasting extends Cancelling {
  /** Why the execution was stopped. */
  readonly stoppedBy: FailureCode | undefined
  /** Ends the execution, because the stream is over. */
  close(): void
}

interface ExecutionPorts {
  readonly deadlines: Deadlines
  readonly live: LiveCalls
}

/**
 * Runs a tool until it answers, it throws, its caller leaves or its deadline passes, whichever is first.
 *
 * A later answer is dropped, and a later error is not an unhandled rejection. If the answer is a stream, the execution
 * continues, and the deadline or the caller's leaving ends the stream.
 */
export function execute(execution: Execution, ports: ExecutionPorts): MaybePromise<Executed> {
  const run = new ToolRun(execution, ports)
  try {
    const { tool, instead, input } = execution
    const answer: unknown = instead ? instead(input, run) : tool.execute?.(input as never, run)
    // A text is neither a promise nor a stream.
    if (typeof answer !== 'object' && typeof answer !== 'function')
      return { ok: true, output: answer, lasting: undefined }
    return isThenable(answer) ? run.settle(answer) : run.answer(answer)
  } catch (error) {
    return { ok: false, code: 'tool_failed', error }
  }
}

/** Returns the view and the request of a call; `undefined` for a context that no gate created. */
export function throughOf(call: CallContext): Through | undefined {
  return ToolRun.throughOf(call)
}

/** One execution: the context that the tool gets, and the events that end it. */
class ToolRun implements CallContext, Timed, LiveCall, Lasting {
  readonly callId: string
  readonly tool: Tool
  readonly caller: Caller
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly context: unknown
  before: LiveCall | undefined
  after: LiveCall | undefined
  stoppedBy: FailureCode | undefined
  readonly #ports: ExecutionPorts
  readonly #parent: Cancelling | undefined
  readonly #through: Through | undefined
  readonly #startedMs: number
  readonly #deadlineMs: number
  #controller: AbortController | undefined
  #stopped: { reason: unknown } | undefined
  #resolve: ((executed: Executed) => void) | undefined
  #watched: Watched | undefined
  #isWatched = false
  #isLasting = false
  #listeners: (() => void)[] = []
  #unwatchParent: (() => void) | undefined

  constructor(
    { callId, tool, caller, onProgress, context, cancelling, startedMs, deadlineMs, through }: Execution,
    ports: ExecutionPorts,
  ) {
    this.#ports = ports
    this.callId = callId
    this.tool = tool
    this.caller = caller
    this.onProgress = onProgress
    this.context = context
    this.#parent = cancelling
    this.#through = through
    this.#startedMs = startedMs
    this.#deadlineMs = deadlineMs
  }

  static throughOf(call: CallContext): Through | undefined {
    return #through in call ? call.#through : undefined
  }

  get aborted(): boolean {
    return this.#stopped !== undefined || this.#parent?.aborted === true
  }

  get reason(): unknown {
    return this.#stopped ? this.#stopped.reason : this.#parent?.reason
  }

  onAbort(listener: () => void): () => void {
    this.#listeners.push(listener)
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener)
    }
  }

  /** Created on demand: a controller costs more than the rest of a call, and most tools never read it. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  settle(answer: PromiseLike<unknown>): Promise<Executed> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#watch()
      const fail = (error: unknown) => this.#end(undefined, { ok: false, code: 'tool_failed', error })
      try {
        // A thenable whose `then` throws rejects here. A promise passes unchanged.
        Promise.resolve(answer).then((output) => this.#end(output, undefined), fail)
      } catch (error) {
        // Reading the constructor of a hostile promise can throw.
        fail(error)
      }
    })
  }

  answer(output: unknown): Executed {
    if (!isStream(output)) return { ok: true, output, lasting: undefined }
    this.#isLasting = true
    this.#watch()
    return { ok: true, output, lasting: this }
  }

  stop(reason: unknown): void {
    this.#stop('tool_aborted', reason)
  }

  close(): void {
    this.#isLasting = false
    this.#unwatch()
  }

  expire(): void {
    this.#watched = undefined
    this.#stop('tool_timeout', new DOMException(`no answer in ${this.#deadlineMs / 1000} s`, 'TimeoutError'))
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#watched = this.#ports.deadlines.watch(this, this.#startedMs, this.#deadlineMs)
    this.#ports.live.add(this)
    if (this.#parent) this.#watchParent(this.#parent)
  }

  #unwatch(): void {
    if (!this.#isWatched) return
    this.#isWatched = false
    if (this.#watched) this.#ports.deadlines.unwatch(this.#watched)
    this.#ports.live.remove(this)
    if (this.#unwatchParent) callAll([this.#unwatchParent])
  }

  #watchParent(parent: Cancelling): void {
    const onAbort = () => this.#stop('tool_aborted', parent.reason)
    try {
      this.#unwatchParent = parent.onAbort(onAbort)
      if (parent.aborted) onAbort()
    } catch (error) {
      // A caller whose leaving cannot be watched counts as gone, so that the call still ends.
      this.#stop('tool_aborted', error)
    }
  }

  #stop(code: FailureCode, error: unknown): void {
    if (this.#stopped) return
    this.#stopped = { reason: error }
    this.stoppedBy = code
    this.#end(undefined, { ok: false, code, error })
    if (this.#isLasting) this.#unwatch()
    this.#controller?.abort(error)
    callAll(this.#listeners)
  }

  #end(output: unknown, failure: Executed | undefined): void {
    if (!this.#resolve) return
    const resolve = this.#resolve
    this.#resolve = undefined
    const executed = failure ?? this.answer(output)
    if (!this.#isLasting) this.#unwatch()
    resolve(executed)
  }
}
