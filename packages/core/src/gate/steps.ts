import type { Caller } from '../ports/caller.ts'
import { checkShape, ConfigError, shapeOf } from '@toolgate/values'
import type { RunFacts } from '../history/facts.ts'
import type { MaybePromise } from '../ports/ports.ts'
import { hasUsedToolIn } from './used-tools.ts'
import type { View } from './view.ts'

/** The outcome of one call of a step. */
export interface StepCall {
  /** A tool id. */
  readonly tool: string
  readonly callId: string
  /** `failed` includes a call whose tool answered an MCP result with `isError`. */
  readonly status: 'done' | 'refused' | 'waiting' | 'failed' | 'input_required'
}

interface StepRecord {
  readonly stepNumber: number
  readonly calls: readonly StepCall[]
}

/** The input of `prepareStep` before a step. */
export interface PrepareStepContext<State = unknown, Context = unknown, Name extends string = string> {
  /** Counted from 0. */
  readonly stepNumber: number
  readonly state: State
  readonly steps: readonly StepRecord[]
  /** The ids that the run's view shows now. */
  readonly tools: readonly string[]
  readonly caller: Caller
  readonly context: Context
  /** The instructions before this step. */
  readonly instructions: string | undefined
  /** The conversation so far, in the host's own form. Empty if the host does not supply it. */
  readonly messages: readonly unknown[]
  /**
   * Returns whether a call of this tool has ended `done` in an earlier step.
   *
   * @throws {ConfigError} for a name that no tool has, if the gate's tools are fixed
   */
  hasUsedTool(tool: Name): boolean
  /** Every call of the earlier steps, oldest first. */
  previousToolCalls(): readonly StepCall[]
}

/** The changes for a step. Absent: no change. */
export interface StepChange<Context = unknown> {
  /** The ids to offer in this step only. It narrows the run's list and cannot widen it. `[]` offers no tools. */
  readonly activeTools?: readonly string[] | undefined
  /** Applies from this step on. */
  readonly instructions?: string | undefined
  readonly model?: unknown
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** Applies from this step on. */
  readonly context?: Context | undefined
}

export type PrepareStep<State = unknown, Context = unknown, Name extends string = string> = (
  context: PrepareStepContext<State, Context, Name>,
) => MaybePromise<StepChange<Context> | undefined>

/** Returns no change for this step. */
export function unchanged(): undefined {
  return undefined
}

/** Offers only these tools in this step; without names, no tools. */
export function withTools<Name extends string>(
  ...activeTools: readonly Name[]
): StepChange<never> & { readonly activeTools: readonly Name[] } {
  return { activeTools }
}

export interface StepsOptions<State, Context, Name extends string = string> {
  readonly prepareStep?: PrepareStep<State, Context, Name> | undefined
  readonly instructions?: string | undefined
  readonly state?: State
  readonly context?: Context
  /** The earlier steps of a continued run. Step numbers continue from theirs. */
  readonly earlier?: readonly StepRecord[] | undefined
}

/** One step of a run, ready to be run. */
export interface Step<Context = unknown> {
  readonly stepNumber: number
  /** The run's view, narrowed for this step, with the current availability and locks. */
  readonly view: View
  readonly instructions: string | undefined
  readonly model: unknown
  readonly options: Readonly<Record<string, unknown>> | undefined
  readonly context: Context
  /** For the developer: requested names that are hidden or no longer exist. */
  readonly warnings: readonly string[]
}

/** The host's data about a step that is not prepared yet. */
interface StepInput {
  readonly messages?: readonly unknown[] | undefined
  /** The history of the run, for rules that hide tools because of it. */
  readonly facts?: RunFacts | undefined
}

/** The steps of one run, one after the other. */
export interface Steps<Context = unknown> {
  /**
   * Prepares the next step.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen; {@link ConfigError} for an
   * invalid answer of `prepareStep`; any error that `prepareStep` throws
   */
  next(about?: StepInput): Promise<Step<Context>>
  /** Records a call of the current step. */
  record(call: StepCall): void
}

/**
 * Returns the steps of a run over its view.
 *
 * `activeTools`, `model` and `options` hold for one step; `instructions` and `context` carry forward.
 *
 * @example
 * const steps = createSteps(view, { prepareStep: ({ hasUsedTool }) => (hasUsedTool('search') ? undefined :
 * withTools('search')) })
 * const { view: tools } = await steps.next()
 */
export function createSteps<State = undefined, Context = undefined, Name extends string = string>(
  view: View<Name>,
  options: StepsOptions<State, Context, NoInfer<Name>> = {},
): Steps<Context> {
  checkShape('createSteps', options, OPTIONS)
  const run: View = view
  const { prepareStep, state } = options
  const steps = (options.earlier ?? []).map(({ stepNumber, calls }) => ({ stepNumber, calls: [...calls] }))
  let instructions = options.instructions
  let context = options.context as Context

  return {
    async next(about = {}) {
      checkShape('next', about, INPUT)
      const stepNumber = (steps.at(-1)?.stepNumber ?? -1) + 1
      const { facts } = about
      const offered = run.narrow({ facts })
      const earlier = steps.map(({ calls, ...step }) => Object.freeze({ ...step, calls: Object.freeze([...calls]) }))
      const change = prepareStep
        ? readChange<Context>(
            await prepareStep(
              contextOf<State, Context, Name>(stepNumber, offered, earlier, {
                state: state as State,
                context,
                instructions,
                messages: about.messages ?? [],
              }),
            ),
          )
        : UNCHANGED
      const { activeTools, model, options: stepOptions } = change
      instructions = change.instructions ?? instructions
      context = change.context ?? context
      const narrowed = activeTools === undefined ? offered : run.narrow({ activeTools, facts })
      steps.push({ stepNumber, calls: [] })
      return {
        stepNumber,
        view: narrowed,
        instructions,
        model,
        options: stepOptions,
        context,
        warnings: warningsOf(activeTools, narrowed),
      }
    },
    record(call) {
      checkShape('record', call, CALL)
      const step = steps.at(-1)
      if (!step) throw new TypeError('no step is under way: next() comes before record()')
      step.calls.push(call)
    },
  }
}

const UNCHANGED: StepChange<never> = {}
const CHANGE = shapeOf<StepChange>(
  { activeTools: true, instructions: true, model: true, options: true, context: true },
  'key',
)
const OPTIONS = shapeOf<StepsOptions<unknown, unknown>>({
  prepareStep: true,
  instructions: true,
  state: true,
  context: true,
  earlier: true,
})
const INPUT = shapeOf<StepInput>({ messages: true, facts: true })
const CALL = shapeOf<StepCall>({ tool: true, callId: true, status: true }, 'field')

/** An invalid answer may have been meant to narrow the tools, so it ends the run. */
function readChange<Context>(answer: unknown): StepChange<Context> {
  if (answer === undefined || answer === null) return UNCHANGED
  if (typeof answer !== 'object' || Array.isArray(answer))
    throw new ConfigError('prepareStep', `must give nothing, or an object with some of ${[...CHANGE.keys].join(', ')}`)
  checkShape('prepareStep', answer, CHANGE)
  const { activeTools } = answer as StepChange<Context>
  if (activeTools !== undefined && !isNames(activeTools))
    throw new ConfigError('prepareStep.activeTools', 'must be a list of tool ids; [] for none')
  return answer
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === 'string')
}

function contextOf<State, Context, Name extends string>(
  stepNumber: number,
  offered: View<Name>,
  steps: readonly StepRecord[],
  given: Pick<PrepareStepContext<State, Context>, 'state' | 'context' | 'instructions' | 'messages'>,
): PrepareStepContext<State, Context, Name> {
  const previous = steps.flatMap(({ calls }) => calls)
  return {
    stepNumber,
    steps,
    ...given,
    tools: offered.ids,
    caller: offered.caller,
    hasUsedTool: hasUsedToolIn(offered, () => previous),
    previousToolCalls: () => previous,
  }
}

function warningsOf(activeTools: readonly string[] | undefined, view: View): readonly string[] {
  const absent = (activeTools ?? []).filter((id) => !view.has(id))
  return absent.map(
    (id) => `"${id}" is not visible in this step: ${view.explain(id).reasons[0]?.text ?? 'it is hidden'}`,
  )
}
