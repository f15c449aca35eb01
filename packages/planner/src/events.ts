import type { Caller, CallOutcome } from '@toolgate/core'
import { safely } from '@toolgate/values'
import type { StepCall } from '@toolgate/core/steps'
import type { Clock } from '@toolgate/core/stores'
import type { AgentCall, PendingCall, RunResult, Usage } from './result.ts'

/** An event of a run, for its listeners. */
export type PlannerEvent = EventOrigin & EventDetails

/** The fields that every event has: its run and its time. */
export interface EventOrigin {
  readonly runId: string
  /** Wall-clock milliseconds. */
  readonly atMs: number
  readonly tenant: string | undefined
  readonly user: string | undefined
  readonly session: string | undefined
  /** The sub-agent calls in which the event happened, the outermost first. Empty for the run itself. */
  readonly agents: readonly AgentCall[]
}

export type EventDetails =
  /** The run waits for its turn in its session. */
  | { readonly type: 'run-queued' }
  | { readonly type: 'run-started'; readonly waitedMs: number; readonly tools: readonly string[] }
  /** Sent in place of `run-started`. `hidden`: tools that the run saw when it paused and no longer sees. */
  | {
      readonly type: 'run-resumed'
      readonly waitedMs: number
      readonly tools: readonly string[]
      readonly hidden: readonly string[]
      readonly policyChanged: boolean
    }
  | { readonly type: 'step-started'; readonly step: number; readonly model: string; readonly tools: readonly string[] }
  | { readonly type: 'step-ended'; readonly step: number; readonly calls: readonly StepCall[]; readonly usage: Usage }
  /** A call was decided, and ran, was refused or waits. `code`: the reason why it did not run, or failed. */
  | ({ readonly type: 'call-decided'; readonly step: number; readonly code: string | undefined } & StepCall)
  | { readonly type: 'agent-started' }
  | { readonly type: 'agent-ended'; readonly status: 'done' | 'paused' | 'failed' }
  | { readonly type: 'run-paused'; readonly pending: readonly PendingCall[]; readonly expiresAt: number }
  | {
      readonly type: 'run-ended'
      readonly status: Exclude<RunResult['status'], 'paused'>
      readonly reason: string
      readonly durationMs: number
    }

/** Returns the result fields of a step's call. */
export function toDecided(
  tool: string,
  step: number,
  outcome: CallOutcome,
): Extract<EventDetails, { readonly type: 'call-decided' }> {
  const { callId, status } = outcome
  return { type: 'call-decided', step, tool, callId, status, code: codeOf(outcome) }
}

function codeOf(outcome: CallOutcome): string | undefined {
  if (outcome.status === 'done' || outcome.status === 'input_required') return undefined
  return outcome.status === 'failed' ? outcome.code : outcome.decision.reasons[0]?.code
}

export type PlannerListener = (event: PlannerEvent) => unknown

/** Sends the events of one run, or of a sub-agent in it, to listeners. */
export interface PlannerEmitter {
  emit(details: EventDetails): void
  /** Returns the emitter of a sub-agent. */
  inside(agent: AgentCall): PlannerEmitter
}

interface EmitterOptions {
  readonly runId: string
  readonly caller: Caller
  readonly clock: Pick<Clock, 'wallMs'>
  readonly listeners: readonly (PlannerListener | undefined)[]
  /** Called with the errors of listeners, which change nothing. */
  readonly onFault: (error: unknown) => void
}

export function createEmitter(options: EmitterOptions, agents: readonly AgentCall[] = []): PlannerEmitter {
  const { runId, caller, clock, onFault } = options
  const { tenant, user, session } = caller
  const listeners = options.listeners.filter((listener) => listener !== undefined)
  return {
    emit(details) {
      if (listeners.length === 0) return
      const event: PlannerEvent = Object.freeze({
        runId,
        atMs: clock.wallMs(),
        tenant,
        user,
        session,
        agents,
        ...details,
      })
      for (const listener of listeners) safely(listener, onFault)(event)
    },
    inside: (agent) => createEmitter(options, Object.freeze([...agents, agent])),
  }
}
