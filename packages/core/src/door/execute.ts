import type { Caller } from '../caller.ts'
import { callAll, type Cancelling } from '../cancelling.ts'
import type { MaybePromise } from '../ports.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import type { Attempt } from './attempt.ts'
import type { Deadlines, Timed, Watched } from './deadlines.ts'
import type { FailureCode } from './outcome.ts'

export interface Execution {
  readonly tool: Tool
  readonly input: unknown
  readonly callId: string
  readonly caller: Caller
  readonly cancelling: Cancelling | undefined
  readonly onProgress: ((progress: Progress) => void) | undefined
  /** On the monotonic clock. */
  readonly startedMs: number
  readonly deadlineMs: number
  /** For the tools that find or run others in their caller's name. */
  readonly through?: Through | undefined
}

/** The view that a call came through, and how. */
export type Through = Pick<Attempt, 'sight' | 'request' | 'callId'>

export type Executed =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly code: FailureCode; readonly error: unknown }

/**
 * Runs a tool until it answers, throws, its caller goes away or its deadline passes, whichever is first.
 *
 * What a tool does after that moment is its own: a late answer is dropped and a late throw is not unhandled.
 */
export function execute(execution: Execution, deadlines: Deadlines): MaybePromise<Executed> {
  const run = new Run(execution)
  try {
    const answer: unknown = execution.tool.execute?.(execution.input as never, run)
    return isThenable(answer) ? run.settle(answer, deadlines) : { ok: true, output: answer }
  } catch (error) {
    return { ok: false, code: 'tool_failed', error }
  }
}

/** Gives what a call came through; `undefined` for a context that no door has made. */
export function throughOf(call: CallContext): Through | undefined {
  return Run.throughOf(call)
}

/** One execution: what the tool is given, and what ends it. */
class Run implements CallContext, Timed {
  readonly callId: string
  readonly tool: Tool
  readonly caller: Caller
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly #parent: Cancelling | undefined
  readonly #through: Through | undefined
  readonly #startedMs: number
  readonly #deadlineMs: number
  #controller: AbortController | undefined
  #stopped: { reason: unknown } | undefined
  #resolve: ((executed: Executed) => void) | undefined
  #deadlines: Deadlines | undefined
  #watched: Watched | undefined
  #listeners: (() => void)[] = []
  #unwatchParent: (() => void) | undefined

  constructor({ callId, tool, caller, onProgress, cancelling, startedMs, deadlineMs, through }: Execution) {
    this.callId = callId
    this.tool = tool
    this.caller = caller
    this.onProgress = onProgress
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

  /** Made when the tool asks for it: a controller costs more than the rest of a call, and most tools never look. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  settle(answer: PromiseLike<unknown>, deadlines: Deadlines): Promise<Executed> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#deadlines = deadlines
      this.#watched = deadlines.watch(this, this.#startedMs, this.#deadlineMs)
      if (this.#parent) this.#watchParent(this.#parent)
      // A thenable that throws when it is asked rejects here; a promise passes as it is.
      Promise.resolve(answer).then(
        (output) => this.#end({ ok: true, output }),
        (error: unknown) => this.#end({ ok: false, code: 'tool_failed', error }),
      )
    })
  }

  expire(): void {
    this.#watched = undefined
    this.#stop('tool_timeout', new DOMException(`no answer in ${this.#deadlineMs / 1000} s`, 'TimeoutError'))
  }

  #watchParent(parent: Cancelling): void {
    const onAbort = () => this.#stop('tool_aborted', parent.reason)
    this.#unwatchParent = parent.onAbort(onAbort)
    if (parent.aborted) onAbort()
  }

  #stop(code: FailureCode, error: unknown): void {
    this.#stopped = { reason: error }
    this.#end({ ok: false, code, error })
    this.#controller?.abort(error)
    callAll(this.#listeners)
  }

  #end(executed: Executed): void {
    if (!this.#resolve) return
    this.#resolve(executed)
    this.#resolve = undefined
    if (this.#watched) this.#deadlines?.unwatch(this.#watched)
    this.#unwatchParent?.()
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
