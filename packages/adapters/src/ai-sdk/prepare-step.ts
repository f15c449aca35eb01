import { ConfigError, type View } from '@toolgate/core'
import { checkShape, isToolError, shapeOf } from '@toolgate/values'
import { hasUsedToolIn } from '@toolgate/core/internal'
import type { StepCall, StepChange as CoreStepChange } from '@toolgate/core/steps'
import type { LanguageModel, ModelMessage, PrepareStepResult, StepResult, ToolSet } from 'ai'
import { fieldsOf, isFunction } from '../shared/fields.ts'
import { RefusedCall } from '../shared/refused.ts'
import { checkGivenTools } from './given-tools.ts'
import { canMask, maskTo } from './mask.ts'
import { answerOpenRequests } from './open-requests.ts'
import type { GuardedStep } from './options.ts'
import type { LoopRun, StepChange } from './run.ts'

/** The fields of the SDK's step that are read here. */
interface StepBeingPrepared {
  readonly stepNumber: number
  readonly steps: readonly StepResult<ToolSet>[]
  readonly messages: readonly ModelMessage[]
  /** The messages before the first step. Version 7 and later. */
  readonly initialMessages?: readonly ModelMessage[] | undefined
  readonly model: LanguageModel
}

/**
 * Returns the SDK's `prepareStep` of a run. Each step gets the tools that the run may see now, narrowed by the host's
 * `prepareStep`.
 */
export function createPrepareStep(
  run: LoopRun,
): (sdk: StepBeingPrepared) => Promise<StepChange | undefined> | StepChange | undefined {
  const { prepareStep: host } = run.options
  return (sdk) => {
    checkGivenTools(run, sdk.initialMessages)
    if (sdk.steps.length === 0) run.beginsWith(sdk.messages)
    const seen = run.view.narrow({})
    run.offer(seen)
    const messages = answerOpenRequests(sdk.messages)
    const step = messages === sdk.messages ? sdk : { ...sdk, messages }
    const change = messages === sdk.messages ? undefined : { messages }
    if (!isFunction(host)) return open(run, step, seen, change)
    return prepare(run, step, seen, host, change)
  }
}

async function prepare(
  run: LoopRun,
  sdk: StepBeingPrepared,
  seen: View,
  host: (options: StepBeingPrepared & GuardedStep) => unknown,
  before: StepChange | undefined,
): Promise<StepChange | undefined> {
  const change = await host({ ...sdk, ...lookBack(run, sdk, seen) })
  return open(run, sdk, seen, change === undefined || change === null ? before : { ...before, ...toChange(change) })
}

/** A step change of the SDK, or of Toolgate. */
type AnyChange = NonNullable<PrepareStepResult<ToolSet, Record<string, unknown>>> &
  CoreStepChange & { readonly experimental_context?: unknown }

const SHAPE = shapeOf<AnyChange>(
  {
    activeTools: true,
    model: true,
    toolChoice: true,
    toolOrder: true,
    instructions: true,
    system: true,
    messages: true,
    runtimeContext: true,
    experimental_context: true,
    toolsContext: true,
    providerOptions: true,
    experimental_sandbox: true,
    options: true,
    context: true,
    maxOutputTokens: true,
    temperature: true,
    topP: true,
    topK: true,
    presencePenalty: true,
    frequencyPenalty: true,
    stopSequences: true,
    seed: true,
    reasoning: true,
  },
  'key',
)

/**
 * Returns a change in the SDK's form: Toolgate's `options` and `context` become the SDK's fields.
 *
 * @throws {ConfigError} for anything else: it may have been written to narrow, so it must not leave all tools open
 */
function toChange(change: unknown): StepChange {
  checkChange(change)
  const { options, context, ...rest } = change
  return { ...fieldsOf(options), ...rest, ...(context === undefined ? {} : { runtimeContext: context }) }
}

function checkChange(change: unknown): asserts change is StepChange {
  if (typeof change !== 'object' || change === null || Array.isArray(change))
    throw new ConfigError('prepareStep', 'must return nothing or an object, such as { activeTools: [] }')
  checkShape('prepareStep', change, SHAPE)
  if ('activeTools' in change && change.activeTools !== undefined && !Array.isArray(change.activeTools))
    throw new ConfigError('prepareStep.activeTools', 'must be a list of tool names; [] for none')
}

function open(
  run: LoopRun,
  sdk: StepBeingPrepared,
  seen: View,
  change: StepChange | undefined,
): StepChange | undefined {
  const asked = change?.activeTools?.map((name) => idOf(run, name))
  const view = asked ? run.view.narrow({ activeTools: asked }) : seen
  for (const id of asked ?? [])
    if (!view.has(id))
      run.warn(
        `"${id}" is not visible in step ${sdk.stepNumber}: ${view.explain(id).reasons[0]?.text ?? 'it is hidden'}`,
      )
  run.openStep(change?.messages ?? sdk.messages, {
    view,
    stepNumber: sdk.stepNumber,
    model: modelId(change?.model ?? sdk.model),
  })
  const names = run.namesOf(view)
  if (!asked || !names || !canMask(run)) return offerTo(names, change)
  return offerTo(run.namesOf(seen), maskTo(run, names, change, sdk.model))
}

function offerTo(names: readonly string[] | undefined, change: StepChange | undefined): StepChange | undefined {
  if (names) return { ...change, activeTools: names }
  if (!change || !('activeTools' in change)) return change
  const { activeTools: _, ...rest } = change
  return rest
}

/** Returns the id of a tool. The name may be an id or a wire name. */
function idOf(run: LoopRun, name: string): string {
  return run.gate.catalog.get(name) ? name : (run.offered(name)?.id ?? name)
}

function modelId(model: LanguageModel): string {
  return typeof model === 'string' ? model : model.modelId
}

function lookBack(run: LoopRun, { steps }: StepBeingPrepared, seen: View): GuardedStep {
  let calls: readonly StepCall[] | undefined
  const previousToolCalls = () => (calls ??= steps.flatMap((step) => callsOf(run, step)))
  return {
    caller: run.view.caller,
    visibleTools: seen.ids,
    previousToolCalls,
    hasUsedTool: hasUsedToolIn(seen, previousToolCalls),
  }
}

/** Returns a step's calls. They come from the SDK's own steps, because several loops may use the same tools at once. */
function callsOf(run: LoopRun, { content }: StepResult<ToolSet>): readonly StepCall[] {
  const ended = new Map<string, StepCall['status']>()
  for (const part of content) {
    if (part.type === 'tool-result') ended.set(part.toolCallId, isToolError(part.output) ? 'failed' : 'done')
    if (part.type === 'tool-error') ended.set(part.toolCallId, statusOf(part.error))
    if (part.type === 'tool-approval-response' && !part.approved) ended.set(part.toolCall.toolCallId, 'refused')
  }
  return content.flatMap((part) =>
    part.type === 'tool-call'
      ? [
          {
            tool: run.offered(part.toolName)?.id ?? part.toolName,
            callId: part.toolCallId,
            status: ended.get(part.toolCallId) ?? 'waiting',
          },
        ]
      : [],
  )
}

/**
 * Returns the status of a call with an error. The SDK gives a text as the error of a call that it cannot read; the gate
 * refused that call.
 */
function statusOf(error: unknown): StepCall['status'] {
  if (error instanceof RefusedCall) return error.outcome.status
  return typeof error === 'string' ? 'refused' : 'failed'
}
