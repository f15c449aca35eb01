import { type CallDone, type CallOutcome, ToolgateError } from '@toolgate/core'
import { messageOf } from '@toolgate/values'

/**
 * A call that did not run, failed or needs more input, for frameworks that expect an error.
 *
 * A framework shows the model the error as a text or as JSON. Both contain the outcome's text. The outcome itself is
 * for the host, and not enumerable.
 */
export class RefusedCall extends ToolgateError {
  declare readonly outcome: Exclude<CallOutcome, CallDone>

  constructor(outcome: Exclude<CallOutcome, CallDone>) {
    super('tool_refused', outcome.text, {
      detail: outcome.status,
      ...(outcome.status === 'failed' ? { cause: outcome.error } : {}),
    })
    Object.defineProperty(this, 'outcome', { value: outcome })
  }

  override toString(): string {
    return this.message
  }

  override toJSON(): unknown {
    return this.message
  }
}

export function isStream(output: unknown): output is AsyncIterable<unknown> {
  return typeof output === 'object' && output !== null && Symbol.asyncIterator in output
}

/** Returns the last item of a stream, for a call that takes one answer. The frameworks do the same. */
export async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown
  for await (const item of stream) last = item
  return last
}

/** Returns the text about a stream that broke. It is the same as for a failed tool. */
export function failureText(name: string, error: unknown): string {
  return `${name} failed: ${messageOf(error)}`
}
