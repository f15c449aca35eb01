import { type CallFailed, type CallRefused, type CallWaiting, ToolgateError } from '@toolgate/core'

/**
 * A call that did not run, or did not end well, for frameworks that take an error for that.
 *
 * They tell the model what the error says of itself, which here is the outcome's text and nothing more.
 */
export class RefusedCall extends ToolgateError {
  readonly outcome: CallRefused | CallWaiting | CallFailed

  constructor(outcome: CallRefused | CallWaiting | CallFailed) {
    super('tool_refused', outcome.text, {
      detail: outcome.status,
      ...(outcome.status === 'failed' ? { cause: outcome.error } : {}),
    })
    this.outcome = outcome
  }

  override toString(): string {
    return this.message
  }
}
