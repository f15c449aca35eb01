import {
  type Caller,
  createGate,
  defineTool,
  type Gate,
  type GateOptions,
  memoryAudit,
  type Tool,
} from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'
import { type ManualClock, manualClock } from '@toolgate/testing'
import type { PlannerEvent } from '../events.ts'
import type { PlannerOptions } from '../options.ts'
import { createPlanner, type Planner } from '../planner.ts'
import type { RunPaused, RunResult } from '../result.ts'
import { type ScriptedModel, scriptedModel, type Turn } from './scripted-model.ts'

export type { ModelRequest, Turn } from './scripted-model.ts'

export const VERA: Caller = { user: 'vera', tenant: 'acme', session: 's1' }

export interface Stage {
  readonly planner: Planner
  readonly gate: Gate
  readonly model: ScriptedModel
  readonly witness: Witness
  readonly audit: MemoryAudit
  /** Returns the records of calls: `pay tool_blocked policy_denied`. */
  attempts(): readonly string[]
  readonly clock: ManualClock
  readonly events: readonly PlannerEvent[]
  /** Returns the types of the events, in order. */
  told(): readonly string[]
}

export interface StageOptions {
  readonly turns: Parameters<typeof scriptedModel>[0]
  /** The tools. Default: `search`, `pay` and `delete_all`. */
  readonly tools?: readonly Tool[]
  readonly gate?: Omit<GateOptions, 'tools' | 'audit' | 'clock'>
  readonly planner?: Partial<PlannerOptions>
}

/** Records each tool that runs. */
interface Witness {
  readonly ran: readonly string[]
  body(name: string): () => string
}

export function createWitness(): Witness {
  const ran: string[] = []
  return { ran, body: (name) => () => (ran.push(name), `${name} done`) }
}

/** Returns a planner over a gate. A test can observe its model requests, runs, records and events. */
export function setStage({ turns, tools, gate: gateOptions, planner: options }: StageOptions): Stage {
  const witness = createWitness()
  const audit = memoryAudit()
  const clock = manualClock()
  const events: PlannerEvent[] = []
  const gate = createGate({
    tools: tools ?? ['search', 'pay', 'delete_all'].map((name) => witnessed(name, witness)),
    policy: { ask: ['pay'] },
    ...gateOptions,
    audit,
    clock,
  })
  const model = scriptedModel(turns)
  const planner = createPlanner({
    model,
    gate,
    clock,
    settings: { maxRetries: 0 },
    onEvent: (event) => events.push(event),
    ...options,
  })
  return {
    planner,
    gate,
    model,
    witness,
    audit,
    clock,
    events,
    told: () => events.map(({ type }) => type),
    attempts: () =>
      audit.records
        .filter(({ tool_call_id }) => tool_call_id !== undefined)
        .map(({ tool, event, reason }) => [tool, event, ...(reason === undefined ? [] : [reason])].join(' ')),
  }
}

export function witnessed(name: string, witness: Witness): Tool {
  return defineTool({ name, execute: witness.body(name) })
}

export function callOf(name: string, input: unknown = {}, id?: string): Turn {
  return [id === undefined ? { name, input } : { name, input, id }]
}

/** Returns a paused result. @throws if the run did not pause */
export function paused(result: RunResult): RunPaused {
  if (result.status !== 'paused') throw new Error(`the run is ${result.status}: ${result.reason}`)
  return result
}

/** Returns the result of a call for the model, in the messages of a result. */
export function toldOf({ messages }: RunResult, callId: string): unknown {
  for (const message of messages) {
    if (message.role !== 'tool') continue
    for (const part of message.content)
      if (part.type === 'tool-result' && part.toolCallId === callId)
        return 'value' in part.output ? part.output.value : part.output
  }
  return undefined
}
