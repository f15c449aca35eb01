import { type CallFailed, type CallRefused, type CallWaiting, ToolgateError } from '@toolgate/core'
import { messageOf } from '@toolgate/core/internal'

/**
 * A call that did not run, or did not end well, for frameworks that take an error for that.
 *
 * They tell the model what the error says of itself, as a text or as JSON: here that is the outcome's text and nothing
 * more. The outcome is for the host, and not enumerable.
 */
export class RefusedCall extends ToolgateError {
  declare readonly outcome: CallRefused | CallWaiting | CallFailed

  constructor(outcome: CallRefused | CallWaiting | CallFailed) {
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

/** Gives what a call that takes one answer is told of a stream: its last item, as in the frameworks. */
export async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown
  for await (const item of stream) last = item
  return last
}

/** Gives what is told of a stream that broke off, in the words that the gate has for a tool that failed. */
export function failureText(name: string, error: unknown): string {
  return `${name} failed: ${messageOf(error)}`
}
