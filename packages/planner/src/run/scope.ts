import type { GuardOptions } from '@toolgate/adapters/ai-sdk'
import type { Gate, View } from '@toolgate/core'
import { shapeOf } from '@toolgate/values'
import type { PrepareStep } from '@toolgate/core/steps'
import type { LanguageModel, StopCondition, streamText, StreamTextResult, ToolSet } from 'ai'
import type { BudgetReason, CallMeter, Meter } from '../budgets.ts'
import type { PlannerEmitter } from '../events.ts'
import type { Conversation, PendingState } from '../pause/state.ts'
import type { AgentCall } from '../result.ts'

const SETTING_KEYS = {
  maxOutputTokens: true,
  temperature: true,
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  stopSequences: true,
  seed: true,
  headers: true,
  maxRetries: true,
  providerOptions: true,
  telemetry: true,
  toolCallConcurrency: true,
} as const

/** The SDK's own settings of a model call. The planner passes them on. */
export type ModelSettings = Pick<Parameters<typeof streamText>[0], keyof typeof SETTING_KEYS>

export const SETTINGS = shapeOf<ModelSettings>(SETTING_KEYS, 'setting')

export type AnyStopCondition = StopCondition<ToolSet>

/** The parts that a run and its sub-agents share. */
export interface RunShared {
  readonly gate: Gate
  readonly runId: string
  /** The user's texts and earlier results at the beginning of the run. Sub-agents add none. */
  readonly words: Pick<GuardOptions, 'userWords' | 'earlierResults' | 'resumed'>
  readonly meter: Meter
  readonly settings: ModelSettings
  /** How tools are offered; see the guide's page about the AI SDK. */
  readonly offering: Pick<GuardOptions, 'mode' | 'provider' | 'acceptUnenforceable' | 'approvals'>
  readonly catalogOf: (view: View) => string
  /** The value for `prepareStep`. */
  readonly state: unknown
  /** Answers by waiting call. */
  readonly answers: ReadonlyMap<PendingState, unknown>
  /** The latest call that uses each approval, by approval. */
  readonly approving: Map<string, Promise<unknown>>
  readonly warn: (text: string) => void
  readonly addUsage: (usage: { readonly input: number; readonly output: number; readonly total: number }) => void
}

/** One conversation with a model, for its calls. */
export interface Scope {
  readonly shared: RunShared
  /** The upper bound of what the conversation sees. */
  readonly view: View
  readonly model: LanguageModel
  readonly stopWhen: readonly AnyStopCondition[]
  readonly events: PlannerEmitter
  readonly signal: AbortSignal
  /** The nested sub-agent calls that led to this conversation, the outermost first. */
  readonly agents: readonly AgentCall[]
  readonly calls: CallMeter
  /** Paused sub-agents, by the call that started them. */
  readonly paused: Map<string, Conversation>
  /** Runs a conversation inside this one. */
  readonly runConversation: (request: ConversationRequest) => Promise<ConversationEnd>
}

export type AnyPrepareStep = PrepareStep

export type AnyStream = StreamTextResult<ToolSet, never, never>

/** A request to run one conversation with a model: the run's own, or a sub-agent's. */
export interface ConversationRequest extends Pick<
  Scope,
  'shared' | 'view' | 'model' | 'stopWhen' | 'events' | 'signal' | 'agents'
> {
  readonly prepareStep: AnyPrepareStep | undefined
  /** A new or a paused conversation. */
  readonly conversation: Conversation
  /** Called with the SDK's stream when it exists. Without this callback nothing is streamed. */
  readonly onStream?: ((stream: AnyStream) => void) | undefined
}

/** The end or pause of a conversation. */
export interface ConversationEnd {
  readonly end:
    | { readonly kind: 'finished' | 'stopped' | 'paused' }
    | {
        readonly kind: 'failed'
        readonly reason: 'model_failed' | 'step_failed' | BudgetReason
        readonly error: unknown
      }
  readonly conversation: Conversation
}

/** The key in a call's context by which a sub-agent finds its run. No other code can write it. */
const CALLER: unique symbol = Symbol('the run of a planner')

/** The conversation in which a sub-agent was called. */
class CallingRun {
  readonly scope: Scope
  /** The sub-agent's paused conversation, if it continues one. */
  readonly continued: Conversation | undefined

  constructor(scope: Scope, continued: Conversation | undefined) {
    this.scope = scope
    this.continued = continued
  }
}

/** Returns the planner's part of a call's context, in addition to the SDK's own options. */
export function contextOf(scope: Scope, continued?: Conversation): object {
  return { [CALLER]: new CallingRun(scope, continued) }
}

/** Returns the run that made a call, or `undefined` for a call that no planner made. */
export function callingRunOf(context: unknown): CallingRun | undefined {
  if (typeof context !== 'object' || context === null || !(CALLER in context)) return undefined
  const { [CALLER]: calling } = context
  return calling instanceof CallingRun ? calling : undefined
}
