import type { Decision } from '../decide/decision.ts'
import type { Approval } from '../ports/ports.ts'

/** The outcome of one call. `text` is the one field for the model. */
export type CallOutcome = CallDone | CallRefused | CallWaiting | CallFailed

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

/** Why a call that was under way was stopped: a person halted it. */
export class HaltedError extends Error {
  override readonly name = 'HaltedError'
}
