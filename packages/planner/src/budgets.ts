import { type CallOutcome, ConfigError, type Hooks } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'

/** The bounds of a run, including its sub-agents and the time before a pause. Absent: no bound. */
export interface Budgets {
  /** Requests to a model. */
  readonly steps?: number | undefined
  /** Calls that run. The next call is refused, and the model is told. */
  readonly calls?: number | undefined
  /** Working time in milliseconds. Pauses and the wait for the session do not count. */
  readonly timeMs?: number | undefined
  /**
   * Tokens in and out, as the providers count them. They are known after each step, so the last step may exceed the
   * budget.
   */
  readonly tokens?: number | undefined
}

const BUDGETS = shapeOf<Budgets>({ steps: true, calls: true, timeMs: true, tokens: true }, 'budget')

const NAMES = ['steps', 'calls', 'timeMs', 'tokens'] as const
export type BudgetName = (typeof NAMES)[number]

/** The amounts that a run has used. */
export type Used = Readonly<Record<BudgetName, number>>

const NOTHING: Used = { steps: 0, calls: 0, timeMs: 0, tokens: 0 }

/** Why a run ended over a budget. */
export type BudgetReason = 'budget_steps' | 'budget_calls' | 'budget_time' | 'budget_tokens'

const REASONS: Readonly<Record<BudgetName, BudgetReason>> = {
  steps: 'budget_steps',
  calls: 'budget_calls',
  timeMs: 'budget_time',
  tokens: 'budget_tokens',
}

/** Counts what one run uses, including its sub-agents. */
export interface Meter {
  readonly budgets: Budgets
  used(): Used
  /** Returns the budget that forbids a further step because it is used up, if any. */
  spent(): BudgetReason | undefined
  /** Returns the milliseconds until the time budget is used up. */
  timeLeftMs(): number
  /** Counts a step. */
  step(): void
  /** Counts the tokens of a step. */
  tokens(count: number): void
  /** Stops the clock: the run pauses or has ended. */
  stop(): void
  /** Counts the calls of one loop. */
  calls(): CallMeter
}

/** Takes from the call budget before a call runs, and gives it back if the call did not run. */
export interface CallMeter {
  readonly hooks: Hooks
  /** Notes that a call has ended. `free`: it costs nothing even though it ran. */
  ended(outcome: CallOutcome, options?: { readonly free?: boolean }): void
  /** Whether a call was refused since this function was last called. */
  refusedAny(): boolean
}

/** @throws {ConfigError} for an unknown budget, and for a value that is not a number of at least 0 */
export function checkBudgets(budgets: Budgets | undefined): void {
  if (budgets === undefined) return
  checkShape('budgets', budgets, BUDGETS)
  for (const [name, value] of Object.entries(budgets)) {
    if (value !== undefined && !(typeof value === 'number' && value >= 0))
      throw new ConfigError(`budgets.${name}`, 'must be a number, 0 or more')
  }
}

/** Returns the smaller value of each budget. */
export function smallestBudgets(...all: readonly (Budgets | undefined)[]): Budgets {
  const met = new Map<BudgetName, number>()
  for (const name of NAMES) {
    const least = Math.min(...all.map((budgets) => budgets?.[name] ?? Infinity))
    if (least !== Infinity) met.set(name, least)
  }
  return Object.fromEntries(met)
}

/** Returns a meter that starts now. `used` is what the run used before it paused. */
export function createMeter(budgets: Budgets, clock: Pick<Clock, 'monotonicMs'>, used: Used = NOTHING): Meter {
  const counted = { ...used }
  const startedMs = clock.monotonicMs()
  let stoppedMs: number | undefined
  const timeMs = () => used.timeMs + (stoppedMs ?? clock.monotonicMs()) - startedMs
  const usedNow = (): Used => ({ ...counted, timeMs: timeMs() })

  return {
    budgets,
    used: usedNow,
    spent() {
      const now = usedNow()
      // The call budget forbids only calls. A model may still answer without a call.
      const over = NAMES.find((name) => name !== 'calls' && now[name] >= (budgets[name] ?? Infinity))
      return over && REASONS[over]
    },
    timeLeftMs: () => (budgets.timeMs ?? Infinity) - timeMs(),
    step: () => void counted.steps++,
    tokens: (count) => void (counted.tokens += count),
    stop: () => void (stoppedMs ??= clock.monotonicMs()),
    calls: () => createCallMeter(budgets.calls ?? Infinity, counted),
  }
}

/** Takes from the budget when a call is checked, so that parallel calls cannot exceed it. */
function createCallMeter(max: number, counted: { calls: number }): CallMeter {
  const taken = createTally()
  const refusals = createTally()
  let refused = false
  return {
    hooks: {
      name: 'the budget of calls',
      beforeToolCall({ callId, onlyAsks }) {
        if (counted.calls >= max) {
          refused = true
          refusals.add(callId)
          return { allow: false, reason: `the run has used its ${max} calls; continue without any` }
        }
        if (onlyAsks) return undefined
        counted.calls++
        taken.add(callId)
        return undefined
      },
    },
    ended({ callId, status }, { free = false } = {}) {
      if (status === 'refused' && refusals.drop(callId)) return
      if (taken.drop(callId)) counted.calls--
      if (!free && status !== 'refused' && status !== 'waiting') counted.calls++
    },
    refusedAny() {
      const was = refused
      refused = false
      return was
    },
  }
}

/** Counts by call id, because a provider may give several calls the same id. */
function createTally(): { add(callId: string): void; drop(callId: string): boolean } {
  const counts = new Map<string, number>()
  return {
    add: (callId) => void counts.set(callId, (counts.get(callId) ?? 0) + 1),
    drop(callId) {
      const count = counts.get(callId) ?? 0
      if (count > 1) counts.set(callId, count - 1)
      else counts.delete(callId)
      return count > 0
    },
  }
}
