import type { Caller } from '../caller.ts'
import type { CallContext, Progress } from '../tools/call-context.ts'
import type { Tool } from '../tools/tool.ts'
import type { FailureCode } from './outcome.ts'

export interface Execution {
  readonly tool: Tool
  readonly input: unknown
  readonly callId: string
  readonly caller: Caller
  readonly signal: AbortSignal | undefined
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly deadlineMs: number
}

export type Executed =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly code: FailureCode; readonly error: unknown }

/**
 * Runs a tool until it answers, throws, its caller goes away or its deadline passes, whichever is first.
 *
 * The tool's signal is made only when the tool asks for it. What a tool does after that moment is its
 * own: a late answer is dropped and a late throw is not unhandled.
 */
export function execute({
  tool,
  input,
  callId,
  caller,
  signal,
  onProgress,
  deadlineMs,
}: Execution): Executed | Promise<Executed> {
  const abort = lazyAbort(signal)
  const context: CallContext = {
    callId,
    tool,
    caller,
    onProgress,
    get signal() {
      return abort.signal
    },
  }
  let answer: unknown
  try {
    answer = tool.execute?.(input as never, context)
  } catch (error) {
    return { ok: false, code: 'tool_failed', error }
  }
  return isThenable(answer) ? settle(answer, abort, signal, deadlineMs) : { ok: true, output: answer }
}

function settle(
  answer: PromiseLike<unknown>,
  abort: LazyAbort,
  signal: AbortSignal | undefined,
  deadlineMs: number,
): Promise<Executed> {
  return new Promise((resolve) => {
    const end = (executed: Executed) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      resolve(executed)
    }
    const stop = (code: FailureCode, error: unknown) => {
      abort.abort(error)
      end({ ok: false, code, error })
    }
    const onAbort = () => stop('tool_aborted', signal?.reason)
    const timer = setTimeout(
      () => stop('tool_timeout', new DOMException(`no answer in ${deadlineMs / 1000} s`, 'TimeoutError')),
      deadlineMs,
    )
    signal?.addEventListener('abort', onAbort, { once: true })
    answer.then(
      (output) => end({ ok: true, output }),
      (error: unknown) => end({ ok: false, code: 'tool_failed', error }),
    )
    if (signal?.aborted) onAbort()
  })
}

interface LazyAbort {
  readonly signal: AbortSignal
  abort(reason: unknown): void
}

/** An AbortController costs more than the rest of a call, and most tools never look at it. */
function lazyAbort(parent: AbortSignal | undefined): LazyAbort {
  let controller: AbortController | undefined
  let aborted: { reason: unknown } | undefined
  return {
    get signal() {
      if (!controller) {
        controller = new AbortController()
        if (aborted) controller.abort(aborted.reason)
        else if (parent?.aborted) controller.abort(parent.reason)
      }
      return controller.signal
    },
    abort(reason) {
      aborted = { reason }
      controller?.abort(reason)
    },
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
