import { type CallFailed, type CallRefused, type CallWaiting, ToolgateError } from '@toolgate/core'

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
