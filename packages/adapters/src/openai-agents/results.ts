import type { CallFailed, CallOutcome, CallRefused, CallWaiting } from '@toolgate/core'
import { RefusedCall } from '../shared/refused.ts'
import { type Invocation, SwallowedError } from './invocation.ts'
import type { AnyFunctionTool } from './sdk-types.ts'

type Own = Pick<AnyFunctionTool, 'errorFunction' | 'outputSchema'>

/** Gives what the SDK takes as a tool's result. @throws the tool's own error, where it lets its errors end the run */
export async function toResult(own: Own, outcome: CallOutcome, context: Invocation): Promise<unknown> {
  if (outcome.status === 'done') return outcome.output
  const { signal } = context.details ?? {}
  if (signal?.aborted) throw signal.reason
  if (outcome.status === 'failed' && outcome.error instanceof SwallowedError) return outcome.error.message
  if (outcome.status === 'failed' && context.thrown) throw context.thrown.error
  return toldBy(own, outcome, context)
}

/** Gives the outcome's text; a tool that promises a schema of its output puts it into words of its own. */
export async function toldBy(
  { errorFunction, outputSchema }: Own,
  outcome: CallRefused | CallWaiting | CallFailed,
  { runContext, details }: Invocation,
): Promise<unknown> {
  if (!outputSchema || !errorFunction) return outcome.text
  return errorFunction(runContext, new RefusedCall(outcome), details)
}
