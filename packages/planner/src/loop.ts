import { guard, type GuardedCallEvent, type GuardedStep } from '@toolgate/adapters/ai-sdk'
import { createSteps, type Step, type Steps } from '@toolgate/core'
import {
  generateText,
  type LanguageModel,
  type PrepareStepFunction,
  type PrepareStepResult,
  streamText,
  type ToolSet,
} from 'ai'
import type { BudgetReason } from './budgets.ts'
import { joinInstructions } from './catalog-prompt.ts'
import { toDecided } from './events.ts'
import type { PendingState } from './pause.ts'
import type { RunStep } from './result.ts'
import { type ResumedPart, tellResumed } from './resumed-parts.ts'
import { type AnyStream, contextOf, type LevelEnd, type LevelRequest, type Scope } from './scope.ts'
import { callsOf, hasUnanswered, pendingOf, type SdkStep, usageOf } from './sdk-step.ts'
import { createTranscript, type Transcript } from './transcript.ts'

/** A conversation in which nothing waits. */
export interface LoopRequest extends Pick<LevelRequest, 'level' | 'prepareStep' | 'onStream'> {
  readonly scope: Scope
  /** The ends of calls that waited before. */
  readonly resumed: readonly ResumedPart[]
}

/** What is known of a conversation while it goes on. */
interface Loop {
  readonly scope: Scope
  readonly transcript: Transcript
  readonly steps: RunStep[]
  /** How many steps there were before. */
  readonly offset: number
  /** Calls of the step under way that are over, by call id. */
  readonly ended: Map<string, GuardedCallEvent>
  instructions: string | undefined
  context: unknown
  pending: readonly PendingState[]
  spent: BudgetReason | undefined
  stopped: boolean
  /** Whether calls over the budget were refused in the step before. */
  refusedBefore: boolean
  failure: { readonly reason: 'model_failed' | 'step_failed'; readonly error: unknown } | undefined
}

/** Runs the SDK's own loop over a view until it ends, pauses or fails. Never throws. */
export async function runLoop(request: LoopRequest): Promise<LevelEnd> {
  const { level, scope } = request
  const { instructions, context } = level
  const loop: Loop = {
    scope,
    transcript: createTranscript(level.messages),
    steps: [...level.steps],
    offset: level.steps.length,
    ended: new Map(),
    instructions,
    context,
    pending: [],
    spent: scope.shared.meter.spent(),
    stopped: false,
    refusedBefore: false,
    failure: undefined,
  }
  if (loop.spent === undefined) {
    try {
      await drive(loop, request)
    } catch (error) {
      loop.failure ??= { reason: 'model_failed', error }
    }
  }
  const { pending, steps, transcript } = loop
  return {
    end: endOf(loop),
    level: { messages: transcript.messages, steps, pending, instructions: loop.instructions, context: loop.context },
  }
}

function endOf({ scope: { signal }, failure, pending, spent, stopped }: Loop): LevelEnd['end'] {
  if (failure) {
    const { reason, error } = failure
    return { kind: 'failed', reason, error: signal.aborted ? signal.reason : error }
  }
  if (pending.length > 0) return { kind: 'paused' }
  if (spent !== undefined) return { kind: 'failed', reason: spent, error: undefined }
  return { kind: stopped ? 'stopped' : 'finished' }
}

type SdkPrepare = PrepareStepFunction<ToolSet>

async function drive(loop: Loop, { scope, prepareStep, onStream, resumed }: LoopRequest): Promise<void> {
  const { shared, view, calls, signal } = scope
  const guarded = await guard(shared.gate, view, {
    ...shared.offering,
    runId: shared.runId,
    hooks: calls.hooks,
    extend: () => contextOf(scope),
    prepareStep: createPrepareStep(loop, prepareStep),
    onCall: (event) => called(loop, event),
    onWarning: shared.warn,
  })
  const options = {
    ...shared.settings,
    model: scope.model,
    messages: [...loop.transcript.messages],
    abortSignal: signal,
    stopWhen: ({ steps }: { steps: SdkStep[] }) => shouldStop(loop, steps),
    onStepEnd: (step: SdkStep) => stepped(loop, step),
    ...guarded,
    prepareStep: numbered(guarded.prepareStep as SdkPrepare, loop.offset),
  }
  if (!onStream) {
    await generateText(options as Parameters<typeof generateText>[0])
    return
  }
  const stream = streamText({
    ...(options as Parameters<typeof streamText>[0]),
    ...(resumed.length > 0 && { experimental_transform: tellResumed(resumed) }),
    onError: ({ error }) => void (loop.failure ??= { reason: 'model_failed', error }),
    onAbort: () => void (loop.failure ??= { reason: 'model_failed', error: signal.reason }),
  })
  onStream(stream as unknown as AnyStream)
  await stream.consumeStream()
}

/** The steps of a run that goes on have the numbers that come next. */
function numbered(prepareStep: SdkPrepare, offset: number): SdkPrepare {
  return offset === 0 ? prepareStep : (sdk) => prepareStep({ ...sdk, stepNumber: sdk.stepNumber + offset })
}

function createPrepareStep(
  loop: Loop,
  prepareStep: LoopRequest['prepareStep'],
): (sdk: Parameters<SdkPrepare>[0] & GuardedStep) => Promise<PrepareStepResult<ToolSet>> {
  const { scope, transcript } = loop
  const { shared, view } = scope
  const steps = prepareStep && stepsOf(loop, prepareStep)
  return async (sdk) => {
    // What came before the first step, such as approvals that the messages claim, is in the SDK's.
    if (sdk.steps.length === 0) transcript.reset(sdk.messages)
    const step = await steps?.next({ messages: sdk.messages })
    for (const warning of step?.warnings ?? []) shared.warn(warning)
    const now = view.narrow({})
    const tools = (step?.view ?? now).ids
    const model = (step?.model as LanguageModel | undefined) ?? scope.model
    const catalog = await hostsOwn(loop, async () => shared.catalogOf(now))
    shared.meter.step()
    loop.ended.clear()
    // Nothing waits from before: what messages claim was approved ran before the step, and what of it waits has no step.
    scope.paused.clear()
    scope.teller.tell({ type: 'step-started', step: sdk.stepNumber, model: modelNameOf(model), tools })
    return {
      ...step?.options,
      model,
      instructions: joinInstructions(loop.instructions, catalog),
      ...(step ? { activeTools: tools } : {}),
    } as PrepareStepResult<ToolSet>
  }
}

/** Gives the steps as the host's `prepareStep` prepares them, each knowing of the calls before. */
function stepsOf(loop: Loop, prepareStep: NonNullable<LoopRequest['prepareStep']>): Pick<Steps, 'next'> {
  const { scope, instructions, context } = loop
  const { view, shared } = scope
  const earlier = [...loop.steps]
  const steps = createSteps<unknown, unknown>(view, {
    prepareStep,
    instructions,
    context,
    state: shared.state,
    earlier,
  })
  let recorded = earlier.length
  return {
    async next(about): Promise<Step> {
      for (const { calls } of loop.steps.slice(recorded)) for (const call of calls) steps.record(call)
      recorded = loop.steps.length
      const step = await hostsOwn(loop, () => steps.next(about))
      loop.instructions = step.instructions
      loop.context = step.context
      return step
    },
  }
}

function called(loop: Loop, event: GuardedCallEvent): void {
  const { calls, paused, teller } = loop.scope
  const { tool, callId, outcome } = event
  loop.ended.set(callId, event)
  calls.ended(outcome, { free: paused.has(callId) })
  teller.tell(toDecided(tool, event.stepNumber ?? loop.steps.length, outcome))
}

function stepped(loop: Loop, step: SdkStep): void {
  const { scope, transcript, steps, ended } = loop
  const { shared, teller, paused } = scope
  const usage = usageOf(step)
  shared.meter.tokens(usage.total)
  shared.addUsage(usage)
  loop.pending = shared.offering.approvals === 'tell' ? [] : pendingOf(step, ended, paused)
  // Results of tools that are executed elsewhere are the host's to bring.
  loop.stopped = hasUnanswered(step)
  const { text, finishReason, response } = step
  if (finishReason === 'error') loop.failure ??= { reason: 'model_failed', error: new Error(FAULTY) }
  transcript.add(response.messages, new Set(loop.pending.map(({ callId }) => callId)))
  const stepNumber = steps.length
  const calls = callsOf(step, ended)
  steps.push({ stepNumber, model: response.modelId, text, calls, finishReason, usage })
  teller.tell({ type: 'step-ended', step: stepNumber, calls, usage })
}

const FAULTY = 'the provider ended its answer with an error'

/** Asked where the model would be asked again. */
async function shouldStop(loop: Loop, steps: SdkStep[]): Promise<boolean> {
  if (loop.pending.length > 0) return true
  const { stopWhen, shared, calls } = loop.scope
  const stops = await hostsOwn(loop, () => Promise.all(stopWhen.map(async (condition) => condition({ steps }))))
  loop.stopped = stops.some((stop) => stop)
  if (loop.stopped) return true
  loop.spent = shared.meter.spent() ?? overCalls(loop, calls.refusedAny())
  return loop.spent !== undefined
}

/** A model that goes on calling after it was told that it has used its calls is ended. */
function overCalls(loop: Loop, refused: boolean): BudgetReason | undefined {
  const wasTold = loop.refusedBefore
  loop.refusedBefore = refused
  return refused && wasTold ? 'budget_calls' : undefined
}

/** What the host's own code throws is no fault of the model. */
async function hostsOwn<T>(loop: Loop, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    loop.failure ??= { reason: 'step_failed', error }
    throw error
  }
}

function modelNameOf(model: LanguageModel): string {
  return typeof model === 'string' ? model : model.modelId
}
