import type { GuardOptions } from '@toolgate/adapters/ai-sdk'
import type { Caller, ForkOptions, Gate, NarrowOptions, ViewOptions } from '@toolgate/core'
import type { HooksInput } from '@toolgate/core/call'
import { shapeOf } from '@toolgate/values'
import type { PrepareStep } from '@toolgate/core/steps'
import type { Clock, SessionLock, StateStore } from '@toolgate/core/stores'
import type { LanguageModel, ModelMessage, StopCondition, ToolSet } from 'ai'
import type { Budgets } from './budgets.ts'
import type { RenderCatalog } from './catalog-prompt.ts'
import type { PlannerListener } from './events.ts'
import type { TokenKey } from './pause/store.ts'
import type { RunResult } from './result.ts'
import type { AnyStream, ModelSettings } from './run/scope.ts'

export type PolicyOf = NarrowOptions['policy']

export interface PlannerOptions<Name extends string = string, Native = unknown> extends Pick<
  GuardOptions,
  'mode' | 'provider' | 'acceptUnenforceable'
> {
  /** A model of the AI SDK. */
  readonly model: LanguageModel
  readonly gate: Gate<Name, Native>
  readonly instructions?: string | undefined
  /** Narrows and instructs each step of every run; see the guide's page about steps. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a host's own types of state and context
  readonly prepareStep?: PrepareStep<any, any, NoInfer<Name>> | undefined
  /** The SDK's stop conditions. Default: after 20 steps. */
  readonly stopWhen?: StopCondition<ToolSet> | readonly StopCondition<ToolSet>[] | undefined
  /**
   * Default: in memory, for the runs of this process. A lock whose turns can be lost needs the `state` of the same
   * stores.
   */
  readonly sessions?: SessionLock | undefined
  /** The store of pauses. Default: in memory, so that pauses are lost when this process ends. */
  readonly state?: StateStore | undefined
  /**
   * The keys that sign the tokens of pauses. Required with your own `state`. Default: a key that only this process has.
   */
  readonly keys?: readonly TokenKey[] | undefined
  /** The name of the deployment. A token is valid only there. Default `toolgate`. */
  readonly deployment?: string | undefined
  /**
   * Whether a run pauses for a person. `false`: the model is told that a call waits for an approval or an input, and the
   * run continues; the same call made again, in this run or a later one, runs once a person has approved it. Default `true`.
   */
  readonly pauses?: boolean | undefined
  /** How long a pause may last. Default 600,000 ms. */
  readonly pauseMs?: number | undefined
  /** The budgets of each run. */
  readonly budgets?: Budgets | undefined
  /** Returns the part of the instructions about tools. `false` leaves it out. Default: the view's notices. */
  readonly catalogPrompt?: RenderCatalog | false | undefined
  /** The SDK's settings of a model call: temperature, retries, provider options. */
  readonly settings?: ModelSettings | undefined
  readonly clock?: Clock | undefined
  readonly onEvent?: PlannerListener | undefined
  /** Called with faults that change no run: a listener that throws, a lock that cannot be released. */
  readonly onFault?: ((error: unknown) => void) | undefined
}

/** The options of any segment of a run, the first or a resumed one. */
export interface SegmentOptions<Name extends string = string> {
  readonly caller: Caller
  /** Runs after the planner's own `prepareStep`. Both narrow. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a host's own types of state and context
  readonly prepareStep?: PrepareStep<any, any, Name> | undefined
  /** A value for `prepareStep`. A pause does not store it. */
  readonly state?: unknown
  /** A value for `prepareStep`, which may replace it. A pause stores it if it is plain JSON. */
  readonly context?: unknown
  /** Combined with the planner's budgets: the smaller value of each applies. */
  readonly budgets?: Budgets | undefined
  readonly signal?: AbortSignal | undefined
  /** The longest wait for the session's turn, in milliseconds. Default: no limit. */
  readonly queueDeadlineMs?: number | undefined
  readonly onEvent?: PlannerListener | undefined
}

/** `app`, `visibility` and `activeTools` narrow what the run sees. */
export interface RunOptions<Name extends string = string> extends SegmentOptions<Name>, ViewOptions<Name> {
  /** Either `prompt` or `messages`. */
  readonly prompt?: string | undefined
  readonly messages?: readonly ModelMessage[] | undefined
  /**
   * The texts that the user has written, for `origin` in conditions. Default: the `prompt`. Texts in `messages` do not
   * count.
   */
  readonly userWords?: string | readonly string[] | undefined
}

export interface ResumeOptions extends SegmentOptions, Answers {
  /** Narrows the tools that the run saw when it paused. It cannot widen them. */
  readonly visibility?: ViewOptions['visibility']
  /** The person who approves or rejects. Default: the caller. */
  readonly by?: Caller | undefined
}

/**
 * A person's answers to the waiting calls, for all calls or by `id`. Approvals that were decided elsewhere, such as in
 * a console, need no answer.
 */
export interface Answers {
  /** `true` approves all calls that wait for an approval. A list approves these calls. */
  readonly approve?: boolean | readonly string[] | undefined
  /** Rejects calls. A text is the reason that the model gets. */
  readonly reject?: boolean | string | { readonly calls?: readonly string[]; readonly reason?: string } | undefined
  /** The input for the only call that waits for one. */
  readonly input?: unknown
  /** Inputs by call `id`, if several calls wait for one. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
}

export interface PlannerStream extends AsyncDisposable {
  readonly runId: string
  /** The SDK's own stream; `undefined` if the run ended, or waits again, before a model request. */
  readonly stream: AnyStream | undefined
  /** Settles when the run ends. The session's turn is held until then. */
  readonly result: Promise<RunResult>
  /** Ends the run. Call it if you do not read the rest of the stream. */
  cancel(reason?: unknown): void
}

export interface PlannerForkOptions<Name extends string = string> extends Pick<ForkOptions<Name>, 'policy'> {
  readonly hooks?: HooksInput | undefined
  /**
   * The fork's name in tokens, the same after a restart. Default: derived from the policy. A policy with functions is
   * known to this process only.
   */
  readonly name?: string | undefined
}

/** The allowed options of a planner, for `checkShape`. */
export const PLANNER = shapeOf<PlannerOptions>({
  model: true,
  gate: true,
  instructions: true,
  prepareStep: true,
  stopWhen: true,
  sessions: true,
  state: true,
  keys: true,
  deployment: true,
  pauses: true,
  pauseMs: true,
  budgets: true,
  catalogPrompt: true,
  settings: true,
  clock: true,
  onEvent: true,
  onFault: true,
  mode: true,
  provider: true,
  acceptUnenforceable: true,
})

const SEGMENT = {
  caller: true,
  prepareStep: true,
  state: true,
  context: true,
  budgets: true,
  signal: true,
  queueDeadlineMs: true,
  onEvent: true,
} as const

export const RUN = shapeOf<RunOptions>({
  prompt: true,
  messages: true,
  userWords: true,
  app: true,
  visibility: true,
  activeTools: true,
  ...SEGMENT,
})

export const RESUME = shapeOf<ResumeOptions>({
  approve: true,
  reject: true,
  input: true,
  inputs: true,
  by: true,
  visibility: true,
  ...SEGMENT,
})

export const REJECTION = shapeOf<Extract<Answers['reject'], object>>({ calls: true, reason: true }, 'field')
export const FORK = shapeOf<PlannerForkOptions>({ policy: true, hooks: true, name: true })
