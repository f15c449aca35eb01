import { randomBytes } from 'node:crypto'
import { ConfigError, type Gate, type View } from '@toolgate/core'
import { checkShape, safely } from '@toolgate/values'
import { type Clock, memoryLock, memoryState, type SessionLock, systemClock } from '@toolgate/core/stores'
import { isStepCount, type LanguageModel } from 'ai'
import { type Budgets, checkBudgets } from './budgets.ts'
import { createCatalogPrompt } from './catalog-prompt.ts'
import type { PlannerListener } from './events.ts'
import { FORK, PLANNER, type PlannerForkOptions, type PlannerOptions } from './options.ts'
import { forkLineage, type Lineage } from './pause/state.ts'
import { createPauseStore, createTokens, type PauseStore, type TokenKey, type PauseTokens } from './pause/store.ts'
import {
  type AnyPrepareStep,
  type AnyStopCondition,
  type ModelSettings,
  type RunShared,
  SETTINGS,
} from './run/scope.ts'

/** The parts that all runs of a planner share, checked, with all defaults filled in. */
export interface PlannerParts {
  readonly model: LanguageModel
  readonly gate: Gate
  readonly instructions: string | undefined
  readonly prepareStep: AnyPrepareStep | undefined
  readonly stopWhen: readonly AnyStopCondition[]
  readonly sessions: SessionLock
  readonly pauses: PauseStore
  readonly tokens: PauseTokens
  readonly deployment: string
  readonly pauseMs: number
  readonly budgets: Budgets
  readonly settings: ModelSettings
  readonly offering: RunShared['offering']
  readonly catalogOf: (view: View) => string
  readonly clock: Clock
  readonly lineage: Lineage
  readonly onEvent: PlannerListener | undefined
  readonly onFault: (error: unknown) => void
}

const DEFAULT_STEPS = 20
const DEFAULT_PAUSE_MS = 600_000
/** A hundred years, in milliseconds. */
const MAX_PAUSE_MS = 100 * 365 * 86_400_000

/** @throws {ConfigError} for an invalid option */
export function readParts(options: PlannerOptions): PlannerParts {
  const {
    catalogPrompt,
    clock = systemClock,
    pauses = true,
    pauseMs = DEFAULT_PAUSE_MS,
    mode,
    provider,
    acceptUnenforceable,
  } = options
  checkShape('createPlanner', options, PLANNER)
  if (options.settings !== undefined) checkShape('createPlanner.settings', options.settings, SETTINGS)
  if (!options.model) throw new ConfigError('model', 'is needed: a model of the AI SDK')
  if (typeof options.gate?.view !== 'function') throw new ConfigError('gate', 'is needed: what createGate returns')
  if (typeof pauses !== 'boolean') throw new ConfigError('pauses', 'must be true or false')
  if (!Number.isSafeInteger(pauseMs) || pauseMs <= 0 || pauseMs > MAX_PAUSE_MS)
    throw new ConfigError('pauseMs', `must be a whole number of milliseconds from 1 to ${MAX_PAUSE_MS}`)
  checkBudgets(options.budgets)
  return {
    model: options.model,
    gate: options.gate,
    instructions: options.instructions,
    prepareStep: options.prepareStep,
    stopWhen: options.stopWhen === undefined ? [isStepCount(DEFAULT_STEPS)] : [options.stopWhen].flat(),
    sessions: options.sessions ?? memoryLock(),
    pauses: createPauseStore(options.state ?? memoryState({ clock })),
    tokens: createTokens(options.keys ?? ownKeys(options)),
    deployment: options.deployment ?? 'toolgate',
    pauseMs,
    budgets: options.budgets ?? {},
    settings: options.settings ?? {},
    offering: { mode, provider, acceptUnenforceable, approvals: pauses ? 'wait' : 'tell' },
    catalogOf: catalogPrompt === false ? () => '' : createCatalogPrompt(catalogPrompt),
    clock,
    lineage: [],
    onEvent: options.onEvent,
    onFault: safely(options.onFault),
  }
}

export function forkParts(parts: PlannerParts, options: PlannerForkOptions): PlannerParts {
  checkShape('fork', options, FORK)
  const { policy, hooks } = options
  return { ...parts, gate: parts.gate.fork({ policy, hooks }), lineage: forkLineage(parts.lineage, options) }
}

function ownKeys({ state }: PlannerOptions): readonly TokenKey[] {
  if (state !== undefined)
    throw new ConfigError('keys', 'are needed with a state of your own: it outlives this process, so the keys must too')
  return [{ id: 'process', secret: randomBytes(32) }]
}
