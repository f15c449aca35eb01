import type { Caller } from '../ports/caller.ts'
import { checkShape, ConfigError, shapeOf } from '@toolgate/values'
import type { RunFacts } from '../history/facts.ts'
import type { MaybePromise } from '../ports/ports.ts'
import type { View } from './view.ts'

/** The outcome of one call of a step. */
export interface StepCall {
  /** A tool id. */
  readonly tool: string
  readonly callId: string
  /** `failed` also where the tool answered an MCP result with `isError`. */
  readonly status: 'done' | 'refused' | 'waiting' | 'failed' | 'input_required'
}

export interface StepRecord {
  readonly stepNumber: number
  readonly calls: readonly StepCall[]
}

/** The input of `prepareStep` before a step. */
export interface PrepareStepContext<State = unknown, Context = unknown> {
  /** From 0. */
  readonly stepNumber: number
  readonly state: State
  readonly steps: readonly StepRecord[]
  /** The ids that the run's view shows now. */
  readonly tools: readonly string[]
  readonly caller: Caller
  readonly context: Context
  /** As they are before this step. */
  readonly instructions: string | undefined
  /** The conversation so far, in the host's own form. Empty where the host does not give it. */
  readonly messages: readonly unknown[]
  /** Whether a call of this tool has ended `done` in an earlier step. */
  hasUsedTool(tool: string): boolean
  /** Every call of the earlier steps, oldest first. */
  previousToolCalls(): readonly StepCall[]
}

/** The changes for a step. Absent: no change. */
export interface StepChange<Context = unknown> {
  /** Ids, for this step only; it narrows the run's list and cannot widen it. `[]`: no tools. */
  readonly activeTools?: readonly string[] | undefined
  /** From this step on. */
  readonly instructions?: string | undefined
  readonly model?: unknown
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** From this step on. */
  readonly context?: Context | undefined
}

export type PrepareStep<State = unknown, Context = unknown> = (
  context: PrepareStepContext<State, Context>,
) => MaybePromise<StepChange<Context> | undefined>

/** No change in this step. */
export function unchanged(): undefined {
  return undefined
}

/** Only these tools in this step; without a name, none. */
export function withTools<Name extends string>(
  ...activeTools: readonly Name[]
): StepChange<never> & { readonly activeTools: readonly Name[] } {
  return { activeTools }
}

export interface StepsOptions<State, Context> {
  readonly prepareStep?: PrepareStep<State, Context> | undefined
  readonly instructions?: string | undefined
  readonly state?: State
  readonly context?: Context
  /** The steps of the run so far, where it is one that goes on: numbers go on from theirs. */
  readonly earlier?: readonly StepRecord[] | undefined
}

/** One step of a run, as it is to be made. */
export interface Step<Context = unknown> {
  readonly stepNumber: number
  /** The run's view, narrowed: availability and locks are those of now. */
  readonly view: View
  readonly instructions: string | undefined
  readonly model: unknown
  readonly options: Readonly<Record<string, unknown>> | undefined
  readonly context: Context
  /** For the developer: names that were asked for and are hidden or gone now. */
  readonly warnings: readonly string[]
}

/** The host's data about a step before it is prepared. */
export interface StepInput {
  readonly messages?: readonly unknown[] | undefined
  /** What the run has done so far, for rules that hide tools because of it. */
  readonly facts?: RunFacts | undefined
}

/** The steps of one run, one after the other. */
export interface Steps<Context = unknown> {
  /**
   * Prepares the next step.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen; {@link ConfigError} for an
   * answer that is none; whatever `prepareStep` throws
   */
  next(about?: StepInput): Promise<Step<Context>>
  /** Takes down a call of the step under way. */
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
export function createSteps<State = undefined, Context = undefined>(
  view: View,
  options: StepsOptions<State, Context> = {},
): Steps<Context> {
  checkShape('createSteps', options, OPTIONS)
  const { prepareStep, state } = options
  const steps = (options.earlier ?? []).map(({ stepNumber, calls }) => ({ stepNumber, calls: [...calls] }))
  let instructions = options.instructions
  let context = options.context as Context

  return {
    async next(about = {}) {
      checkShape('next', about, INPUT)
      const stepNumber = (steps.at(-1)?.stepNumber ?? -1) + 1
      const { facts } = about
      const offered = view.narrow({ facts })
      const earlier = steps.map(({ calls, ...step }) => Object.freeze({ ...step, calls: Object.freeze([...calls]) }))
      const change = prepareStep
        ? readChange<Context>(
            await prepareStep(
              contextOf(stepNumber, offered, earlier, {
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
      const narrowed = activeTools === undefined ? offered : view.narrow({ activeTools, facts })
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

/** An invalid answer may have intended to narrow, so it ends the run. */
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

function contextOf<State, Context>(
  stepNumber: number,
  offered: View,
  steps: readonly StepRecord[],
  given: Pick<PrepareStepContext<State, Context>, 'state' | 'context' | 'instructions' | 'messages'>,
): PrepareStepContext<State, Context> {
  const previous = steps.flatMap(({ calls }) => calls)
  return {
    stepNumber,
    steps,
    ...given,
    tools: offered.ids,
    caller: offered.caller,
    hasUsedTool: (tool) => previous.some((call) => call.tool === tool && call.status === 'done'),
    previousToolCalls: () => previous,
  }
}

function warningsOf(activeTools: readonly string[] | undefined, view: View): readonly string[] {
  const absent = (activeTools ?? []).filter((id) => !view.has(id))
  return absent.map(
    (id) => `"${id}" is not visible in this step: ${view.explain(id).reasons[0]?.text ?? 'it is hidden'}`,
  )
}
