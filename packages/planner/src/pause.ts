import type { JsonSchema } from '@toolgate/core'
import type { ModelMessage } from 'ai'
import type { Budgets, Used } from './budgets.ts'
import type { AgentCall } from './agent-call.ts'
import type { PendingCall, RunStep, Usage } from './result.ts'
import { isStorable } from './stored-text.ts'

/** All that a paused run needs to go on. What may run is not in it: that is the gate's to say, at the resume. */
export interface PauseState {
  readonly version: 1
  /** Makes no two pauses alike. */
  readonly nonce: string
  readonly runId: string
  readonly identity: string
  readonly app: string | undefined
  /** What the run saw when it paused, with the hash of each definition. */
  readonly tools: readonly (readonly [id: string, definitionHash: string])[]
  readonly policyRevision: number
  /** Of the planner: the forks that it came from. */
  readonly lineage: readonly string[]
  readonly budgets: Budgets
  readonly used: Used
  readonly usage: Usage
  readonly level: LevelState
}

/** One conversation with a model: the run's own, or that of a sub-agent in it. */
export interface LevelState {
  /** Without results of the calls that wait. */
  readonly messages: readonly ModelMessage[]
  readonly steps: readonly RunStep[]
  /** As `prepareStep` has left them. */
  readonly instructions: string | undefined
  readonly context: unknown
  readonly pending: readonly PendingState[]
}

export type PendingState = WaitingCall &
  (
    | { readonly kind: 'approval'; readonly approvalId: string }
    | { readonly kind: 'input'; readonly question: string; readonly schema: JsonSchema }
    /** A sub-agent in which calls wait. */
    | { readonly kind: 'agent'; readonly level: LevelState }
  )

/** A call whose result is not known yet. */
export interface WaitingCall {
  readonly callId: string
  /** A tool id. */
  readonly tool: string
  /** As the model wrote it. */
  readonly name: string
  readonly input: unknown
}

/** Leaves out the contexts that cannot be stored, and says how many. */
export function toStorable(level: LevelState): { readonly level: LevelState; readonly lost: number } {
  const isLost = level.context !== undefined && !isStorable(level.context)
  let lost = isLost ? 1 : 0
  const pending = level.pending.map((call) => {
    if (call.kind !== 'agent') return call
    const inside = toStorable(call.level)
    lost += inside.lost
    return { ...call, level: inside.level }
  })
  return { level: { ...level, pending, context: isLost ? undefined : level.context }, lost }
}

/** One call that a person has to answer, as it is told and as it is kept. */
export interface OpenCall {
  readonly told: PendingCall
  readonly kept: Exclude<PendingState, { readonly kind: 'agent' }>
}

/** Gives all that people have to answer, in the order of the calls, those in sub-agents where the sub-agent stands. */
export function openCallsOf(level: LevelState): readonly OpenCall[] {
  const ids = new Set<string>()
  return walk(level, []).map(({ kept, agents }) => {
    const { callId, tool, input } = kept
    const id = freeId([...agents.map((agent) => agent.callId), callId].map(encodeURIComponent).join('/'), ids)
    const base = { id, tool, callId, input, agents }
    const told: PendingCall =
      kept.kind === 'approval'
        ? { ...base, kind: kept.kind, approvalId: kept.approvalId }
        : { ...base, kind: kept.kind, question: kept.question, schema: kept.schema }
    return { told: Object.freeze(told), kept }
  })
}

function walk(
  level: LevelState,
  agents: readonly AgentCall[],
): readonly { readonly kept: OpenCall['kept']; readonly agents: readonly AgentCall[] }[] {
  return level.pending.flatMap((kept) =>
    kept.kind === 'agent'
      ? walk(kept.level, [...agents, { tool: kept.tool, callId: kept.callId }])
      : [{ kept, agents }],
  )
}

/** Providers should name calls apart; where one does not, the second is told from the first. */
function freeId(wanted: string, taken: Set<string>): string {
  let id = wanted
  for (let n = 2; taken.has(id); n++) id = `${wanted}~${n}`
  taken.add(id)
  return id
}
