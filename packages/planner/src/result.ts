import type { JsonSchema } from '@toolgate/core'
import type { StepCall } from '@toolgate/core/steps'
import type { ModelMessage } from 'ai'
import type { BudgetReason, Used } from './budgets.ts'

/** The result of a run. A refusal, a pause and a model failure are values; only misuse throws. */
export type RunResult = RunDone | RunPaused | RunFailed

export interface RunReport {
  readonly runId: string
  /** The model's last text. */
  readonly text: string
  /** The whole conversation. Pass it to the next run to continue. */
  readonly messages: readonly ModelMessage[]
  /** Of the whole run, including the time before its pauses. */
  readonly steps: readonly RunStep[]
  /** Tokens of the whole run, including its sub-agents. */
  readonly usage: Usage
  /** Of its budgets. */
  readonly used: Used
  /** The part of the instructions about tools. */
  readonly notices: readonly string[]
  /** For the developer: a visibility that failed or named an unknown tool, names that are hidden in a step. */
  readonly warnings: readonly string[]
}

export interface RunDone extends RunReport {
  readonly status: 'done'
  /** `stopped`: a stop condition of the host ended it before the model did. */
  readonly reason: 'finished' | 'stopped'
}

export interface RunPaused extends RunReport {
  readonly status: 'paused'
  /** Valid for one resume, until it expires. */
  readonly resumeToken: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
  /** The calls that people must answer. */
  readonly pending: readonly PendingCall[]
}

export interface RunFailed extends RunReport {
  readonly status: 'failed'
  readonly reason: FailureReason
  /** The cause as it was thrown, by the model, the signal, `prepareStep` or a store. For the log. */
  readonly error: unknown
}

export type FailureReason =
  /** The model, its provider or the SDK failed. */
  | 'model_failed'
  /** The host's code threw: `prepareStep`, a stop condition or something else. */
  | 'step_failed'
  /** The signal aborted, while it ran or while it waited. */
  | 'aborted'
  /** Its turn in the session did not come in time. */
  | 'queue_timeout'
  /** The session's lock is unavailable. */
  | 'session_unavailable'
  /** The pause could not be stored. */
  | 'pause_failed'
  | BudgetReason

export interface RunStep {
  /** The step of the run, from 0, counted across its pauses. */
  readonly stepNumber: number
  /** The provider's name for it. */
  readonly model: string
  readonly text: string
  readonly calls: readonly StepCall[]
  readonly finishReason: string
  readonly usage: Usage
}

/** Tokens. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly total: number
}

/** One call that waits for a person. */
export type PendingCall = PendingApproval | PendingInput

interface PendingBase {
  /** Names it in the resume. */
  readonly id: string
  /** A tool id. */
  readonly tool: string
  readonly callId: string
  /** The model's input. */
  readonly input: unknown
  /** The sub-agent calls in which it was made, the outermost first. */
  readonly agents: readonly AgentCall[]
}

export interface PendingApproval extends PendingBase {
  readonly kind: 'approval'
  /** The id in `gate.approvals`. */
  readonly approvalId: string
}

export interface PendingInput extends PendingBase {
  readonly kind: 'input'
  readonly question: string
  /** The schema of an answer. */
  readonly schema: JsonSchema
}

export const NO_USAGE: Usage = Object.freeze({ input: 0, output: 0, total: 0 })

export function addUsage(a: Usage, b: Usage): Usage {
  return { input: a.input + b.input, output: a.output + b.output, total: a.total + b.total }
}

/** A sub-agent at work: its tool, and the call that started it. */
export interface AgentCall {
  readonly tool: string
  readonly callId: string
}
