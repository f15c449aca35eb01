import type { JsonSchema } from '@toolgate/core'
import type { StepCall } from '@toolgate/core/steps'
import type { ModelMessage } from 'ai'
import type { BudgetReason, Used } from './budgets.ts'

/** What came of a run. A refusal, a pause and a model that fails are values; only misuse throws. */
export type RunResult = RunDone | RunPaused | RunFailed

export interface RunReport {
  readonly runId: string
  /** What the model said last. */
  readonly text: string
  /** The whole conversation: what the run began with, and all that came of it. Give it to the next run to go on. */
  readonly messages: readonly ModelMessage[]
  /** Of the whole run, also before its pauses. */
  readonly steps: readonly RunStep[]
  /** Tokens of the whole run, its sub-agents among them. */
  readonly usage: Usage
  /** Of its budgets. */
  readonly used: Used
  /** What the instructions told the model of its tools, beside the tools. */
  readonly notices: readonly string[]
  /** For the developer: a visibility that failed or named what it was not given, names that are hidden in a step. */
  readonly warnings: readonly string[]
}

export interface RunDone extends RunReport {
  readonly status: 'done'
  /** `stopped`: a stop condition of the host ended it, though the model would have gone on. */
  readonly reason: 'finished' | 'stopped'
}

export interface RunPaused extends RunReport {
  readonly status: 'paused'
  /** Good for one resume, until it expires. */
  readonly resumeToken: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
  /** What people have to answer. */
  readonly pending: readonly PendingCall[]
}

export interface RunFailed extends RunReport {
  readonly status: 'failed'
  readonly reason: FailureReason
  /** The cause, as it was thrown: of the model, the signal, `prepareStep` or a store. For the log. */
  readonly error: unknown
}

export type FailureReason =
  /** The model, its provider or the SDK failed. */
  | 'model_failed'
  /** `prepareStep`, a stop condition or something else of the host's own threw. */
  | 'step_failed'
  /** The signal aborted, while it ran or while it waited. */
  | 'aborted'
  /** Its turn in the session did not come in time. */
  | 'queue_timeout'
  /** The session's lock cannot be had. */
  | 'session_unavailable'
  /** The pause could not be stored. */
  | 'pause_failed'
  | BudgetReason

export interface RunStep {
  /** Of the run, from 0, on over its pauses. */
  readonly stepNumber: number
  /** As the provider names it. */
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
  /** What the model gave. */
  readonly input: unknown
  /** The calls of sub-agents that it was made in, the outermost first. */
  readonly agents: readonly AgentCall[]
}

export interface PendingApproval extends PendingBase {
  readonly kind: 'approval'
  /** In `gate.approvals`, where it counts. */
  readonly approvalId: string
}

export interface PendingInput extends PendingBase {
  readonly kind: 'input'
  readonly question: string
  /** What an answer must be. */
  readonly schema: JsonSchema
}

export const NO_USAGE: Usage = Object.freeze({ input: 0, output: 0, total: 0 })

export function addUsage(a: Usage, b: Usage): Usage {
  return { input: a.input + b.input, output: a.output + b.output, total: a.total + b.total }
}

/** A sub-agent at work: its tool, and the call that it answers. */
export interface AgentCall {
  readonly tool: string
  readonly callId: string
}
