import type { Decision, OutcomeWord } from '../decide/decision.ts'
import type { Approval, ApproverRule } from '../ports/ports.ts'

/** The outcome of one call. `text` is the one field for the model. */
export type CallOutcome = CallDone | CallRefused | CallWaiting | CallFailed | CallInputRequired

export interface CallDone {
  readonly status: 'done'
  readonly callId: string
  /** What `execute` returned, unchanged. */
  readonly output: unknown
  /** The tool ran and its result says that it failed: an MCP result with `isError`. It is `failed` in the audit. */
  readonly isError: boolean
  readonly durationMs: number
  readonly text: string
}

export interface CallRefused {
  readonly status: 'refused'
  readonly callId: string
  readonly decision: Decision
  readonly text: string
}

export interface CallWaiting {
  readonly status: 'waiting'
  readonly callId: string
  readonly decision: Decision
  readonly approval: Approval
  readonly text: string
}

/**
 * A tool returns this when it needs more input before it can answer. The attempt ends `input_required`, and the host
 * makes the call again with the answers.
 *
 * @example
 * execute: (input, call) => call.context.answer ?? new InputRequired({ question: 'Which folder?' })
 */
export class InputRequired {
  /** Plain JSON for the host. */
  readonly payload: unknown
  /** For a tool that calls another one, whose call needs the input: the next round of that call. */
  readonly inner: Continuation | undefined

  constructor(payload: unknown, inner?: Continuation) {
    this.payload = payload
    this.inner = inner
  }
}

/** Links the rounds of one call. Plain JSON, for the host to keep and to pass on as it is. */
export interface Continuation {
  /** The id of the first round. */
  readonly callId: string
  /** How many rounds have ended. */
  readonly round: number
  /** SHA-256, hex, of caller, tool, definition and input. A call that differs in any of them continues nothing. */
  readonly binding: string
  /** The approval that the first round has used. */
  readonly approvalId?: string | undefined
  /** The rule for the approver of that approval. */
  readonly approver?: ApproverRule | undefined
  /** What asked for it. */
  readonly asked?: readonly string[] | undefined
  /** The gate's own name of the call. Absent where no rule reads what happened. */
  readonly event?: string | undefined
  /** The rounds of the call that the tool has made itself. */
  readonly inner?: Continuation | undefined
}

export interface CallInputRequired {
  readonly status: 'input_required'
  readonly callId: string
  /** The payload of the tool's {@link InputRequired}. */
  readonly payload: unknown
  /** For `continues` of the next round. */
  readonly continues: Continuation
  readonly durationMs: number
  readonly text: string
}

export const FAILURES = ['tool_failed', 'tool_timeout', 'tool_aborted'] as const
export type FailureCode = (typeof FAILURES)[number]

export interface CallFailed {
  readonly status: 'failed'
  readonly callId: string
  readonly code: FailureCode
  /** The error of `execute`, or the abort's reason. For the log. */
  readonly error: unknown
  readonly durationMs: number
  readonly text: string
}

/** Why a call that was under way was stopped: its gate was closed. */
export class GateClosedError extends Error {
  override readonly name = 'GateClosedError'

  constructor() {
    super('the gate was closed')
  }
}

/** Why a call that was under way was stopped: its replica has not known for too long what the others have changed. */
export class LeaseEndedError extends Error {
  override readonly name = 'LeaseEndedError'

  constructor() {
    super('this replica lost touch with the others')
  }
}

/** Why a call that was under way was stopped: a person halted it. */
export class HaltedError extends Error {
  override readonly name = 'HaltedError'
}

/** Returns the word of the decision that a call came to. */
export function wordOf(outcome: CallOutcome): OutcomeWord {
  switch (outcome.status) {
    case 'refused':
      return outcome.decision.outcome
    case 'waiting':
      return 'ask'
    case 'done':
    case 'failed':
    case 'input_required':
      return 'allow'
  }
}
