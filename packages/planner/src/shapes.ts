import { shapeOf } from '@toolgate/core'
import type { Answers, PlannerForkOptions, PlannerOptions, ResumeOptions, RunOptions } from './options.ts'
import type { ModelSettings } from './scope.ts'

/** The options objects of the planner, for `checkShape`. */
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

const LEG = {
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
  app: true,
  visibility: true,
  activeTools: true,
  ...LEG,
})

export const RESUME = shapeOf<ResumeOptions>({
  approve: true,
  reject: true,
  input: true,
  inputs: true,
  by: true,
  visibility: true,
  ...LEG,
})

export const REJECTION = shapeOf<Extract<Answers['reject'], object>>({ calls: true, reason: true }, 'field')
export const FORK = shapeOf<PlannerForkOptions>({ policy: true, hooks: true, name: true })

export const SETTINGS = shapeOf<ModelSettings>(
  {
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
  },
  'setting',
)
