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
  /** The steps of the whole run, including those before its pauses. */
  readonly steps: readonly RunStep[]
  /** Tokens of the whole run, including its sub-agents. */
  readonly usage: Usage
  /** The used part of the run's budgets. */
  readonly used: Used
  /** The part of the instructions about tools. */
  readonly notices: readonly string[]
  /** Warnings for the developer: a visibility failed or named an unknown tool, or a named tool is hidden in a step. */
  readonly warnings: readonly string[]
}

export interface RunDone extends RunReport {
  readonly status: 'done'
  /** `stopped`: a stop condition of the host ended the run before the model finished. */
  readonly reason: 'finished' | 'stopped'
}

export interface RunPaused extends RunReport {
  readonly status: 'paused'
  /** A token that is valid for one resume, until it expires. */
  readonly resumeToken: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
  /** The calls that people must answer. */
  readonly pending: readonly PendingCall[]
}

export interface RunFailed extends RunReport {
  readonly status: 'failed'
  readonly reason: FailureReason
  /** The thrown cause, from the model, the signal, `prepareStep` or a store. For the log. */
  readonly error: unknown
}

export type FailureReason =
  /** The model, its provider or the SDK failed. */
  | 'model_failed'
  /** The host's code threw: `prepareStep`, a stop condition or something else. */
  | 'step_failed'
  /** The signal aborted the run, while it was active or waiting. */
  | 'aborted'
  /** The run's turn in its session did not come in time. */
  | 'queue_timeout'
  /** The session's lock is unavailable. */
  | 'session_unavailable'
  /** The pause could not be stored. */
  | 'pause_failed'
  | BudgetReason

export interface RunStep {
  /** The number of the step in the run, from 0. The count continues across pauses. */
  readonly stepNumber: number
  /** The provider's name of the model. */
  readonly model: string
  readonly text: string
  readonly calls: readonly StepCall[]
  readonly finishReason: string
  readonly usage: Usage
}

/** Numbers of tokens. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly total: number
}

/** One call that waits for a person. */
export type PendingCall = PendingApproval | PendingInput

interface PendingBase {
  /** The id that the resume uses for this call. */
  readonly id: string
  /** A tool id. */
  readonly tool: string
  readonly callId: string
  /** The model's input. */
  readonly input: unknown
  /** The sub-agent calls that contain this call, the outermost first. */
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
  /** The schema that an answer must match. */
  readonly schema: JsonSchema
}

export const NO_USAGE: Usage = Object.freeze({ input: 0, output: 0, total: 0 })

export function addUsage(a: Usage, b: Usage): Usage {
  return { input: a.input + b.input, output: a.output + b.output, total: a.total + b.total }
}

/** The call that started a sub-agent. */
export interface AgentCall {
  readonly tool: string
  readonly callId: string
}
