import type { LegOptions, PlannerStream } from './options.ts'
import type { LegRequest } from './leg.ts'
import type { RunResult } from './result.ts'
import type { AnyStream } from './scope.ts'
import { createStopping } from './stopping.ts'

type OnStream = NonNullable<LegRequest['onStream']>

/** Hands the SDK's stream out as soon as there is one; the run itself reads it to its end, whoever else does. */
export async function streamed<Options extends LegOptions>(
  options: Options,
  run: (options: Options, onStream: OnStream) => Promise<RunResult>,
): Promise<PlannerStream> {
  const canceller = createStopping(options.signal)
  const begun = Promise.withResolvers<{ readonly stream: AnyStream | undefined; readonly runId: string }>()
  const result = run({ ...options, signal: canceller.signal }, (stream, runId) => begun.resolve({ stream, runId }))
  result
    .then(({ runId }) => begun.resolve({ stream: undefined, runId }), begun.reject)
    .finally(() => canceller.close())
    .catch(() => {})
  const { stream, runId } = await begun.promise
  const cancel = (reason: unknown = new DOMException('nobody wants the rest of this run', 'AbortError')) =>
    canceller.abort(reason)
  return {
    runId,
    stream,
    result,
    cancel,
    async [Symbol.asyncDispose]() {
      cancel()
      await result.catch(() => {})
    },
  }
}
