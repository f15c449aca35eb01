import type { Decision, OutcomeWord } from '../decide/decision.ts'
import type { Approval, ApprovalEdit, ApproverRule } from '../ports/ports.ts'

/** The outcome of one call. `text` is the only field for the model. */
export type CallOutcome = CallDone | CallRefused | CallWaiting | CallFailed | CallInputRequired

export interface CallDone {
  readonly status: 'done'
  readonly callId: string
  /** What `execute` returned, unchanged unless it was cut. */
  readonly output: unknown
  /** The output had more characters than the gate's `maxOutputChars`. */
  readonly isCut?: boolean
  /** The tool ran and its result reports a failure: an MCP result with `isError`. The audit records `failed`. */
  readonly isError: boolean
  readonly durationMs: number
  /** What an approver changed of the input, for the model. `text` begins with it; `output` does not have it. */
  readonly note?: string | undefined
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
  /** Continues the inner call, if the tool called another tool that needs more input. */
  readonly inner: Continuation | undefined

  constructor(payload: unknown, inner?: Continuation) {
    this.payload = payload
    this.inner = inner
  }
}

/** Links the rounds of one call. Plain JSON that the host stores and passes on unchanged. */
export interface Continuation {
  /** The call id of the first round. */
  readonly callId: string
  /** The number of rounds that have ended. */
  readonly round: number
  /** SHA-256, hex, of caller, tool, definition and input. A call that differs in any of them does not continue this one. */
  readonly binding: string
  /** The approval that the first round used. */
  readonly approvalId?: string | undefined
  /** The rule about who may approve that approval. */
  readonly approver?: ApproverRule | undefined
  /** The clauses that required the approval. */
  readonly asked?: readonly string[] | undefined
  /** What the approver changed of the input. Each round has the change. */
  readonly edit?: ApprovalEdit | undefined
  /** The gate's id of the call. Absent if no rule reads histories. */
  readonly event?: string | undefined
  /** The continuation of a call that the tool itself made. */
  readonly inner?: Continuation | undefined
}

export interface CallInputRequired {
  readonly status: 'input_required'
  readonly callId: string
  /** The payload of the tool's {@link InputRequired}. */
  readonly payload: unknown
  /** Pass this as `continues` in the next round. */
  readonly continues: Continuation
  readonly durationMs: number
  readonly text: string
}

const FAILURES = ['tool_failed', 'tool_timeout', 'tool_aborted'] as const
export type FailureCode = (typeof FAILURES)[number]

export interface CallFailed {
  readonly status: 'failed'
  readonly callId: string
  readonly code: FailureCode
  /** The error of `execute`, or the abort's reason. For the log. */
  readonly error: unknown
  readonly durationMs: number
  /** What an approver changed of the input, for the model. `text` begins with it. */
  readonly note?: string | undefined
  readonly text: string
}

/** Why a running call was stopped: its gate was closed. */
export class GateClosedError extends Error {
  override readonly name = 'GateClosedError'

  constructor() {
    super('the gate was closed')
  }
}

/** Why a running call was stopped: its replica has been unable to see the changes of other replicas for too long. */
export class LeaseEndedError extends Error {
  override readonly name = 'LeaseEndedError'

  constructor() {
    super('this replica lost touch with the others')
  }
}

/** Why a running call was stopped: a person halted it. */
export class HaltedError extends Error {
  override readonly name = 'HaltedError'
}

/** Returns the decision word for the outcome of a call. */
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
