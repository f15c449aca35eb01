import { guard, type GuardedCallEvent, type GuardedStep } from '@toolgate/adapters/ai-sdk'
import { createSteps, factsOf, type Step, type Steps } from '@toolgate/core/steps'
import {
  generateText,
  type LanguageModel,
  type PrepareStepFunction,
  type PrepareStepResult,
  streamText,
  type ToolSet,
} from 'ai'
import type { BudgetReason } from '../budgets.ts'
import { joinInstructions } from '../catalog-prompt.ts'
import { toDecided } from '../events.ts'
import { type ResumedPart, settle, withResumed } from '../pause/settle.ts'
import type { Conversation, PendingState } from '../pause/state.ts'
import type { RunStep } from '../result.ts'
import {
  type AnyPrepareStep,
  type AnyStream,
  contextOf,
  type ConversationEnd,
  type ConversationRequest,
  type Scope,
} from './scope.ts'
import { callsOf, createTranscript, hasUnanswered, pendingOf, type SdkStep, type Transcript, usageOf } from './step.ts'

/** Continues a conversation: settles its waiting calls, and runs the model when none waits any longer. */
export async function runConversation(request: ConversationRequest): Promise<ConversationEnd> {
  const { shared, view, model, stopWhen, events, signal, agents } = request
  const calls = shared.meter.calls()
  const paused = new Map<string, Conversation>()
  const scope = { shared, view, model, stopWhen, events, signal, agents, calls, paused, runConversation }
  let { conversation } = request
  let resumed: readonly ResumedPart[] = []
  if (conversation.pending.length > 0) {
    const { calls: settledCalls, parts, ...settled } = await settle(conversation, scope)
    resumed = parts
    conversation = { ...conversation, ...settled, steps: withCalls(conversation, settledCalls) }
    if (conversation.pending.length > 0) return { end: { kind: 'paused' }, conversation }
  }
  return new ConversationLoop(scope, { ...request, conversation }, resumed).run()
}

/** Adds the outcomes of the waiting calls to the step in which the run paused. */
function withCalls({ steps }: Conversation, calls: Awaited<ReturnType<typeof settle>>['calls']): readonly RunStep[] {
  const last = steps.at(-1)
  if (!last) return steps
  const settled = new Map(calls.map(({ tool, callId, status }) => [callId, { tool, callId, status }]))
  return [...steps.slice(0, -1), { ...last, calls: last.calls.map((call) => settled.get(call.callId) ?? call) }]
}

type SdkPrepare = PrepareStepFunction<ToolSet>
type ConversationFailure = { readonly reason: 'model_failed' | 'step_failed'; readonly error: unknown }

/** Runs the SDK's own loop over a view. No call of the conversation is waiting. */
class ConversationLoop {
  readonly #scope: Scope
  readonly #request: ConversationRequest
  /** The ends of calls that waited before this segment. */
  readonly #resumed: readonly ResumedPart[]
  readonly #transcript: Transcript
  readonly #steps: RunStep[]
  /** The number of earlier steps. */
  readonly #offset: number
  /** Finished calls of the current step, by call id. */
  readonly #ended = new Map<string, GuardedCallEvent>()
  #instructions: string | undefined
  #context: unknown
  #pending: readonly PendingState[] = []
  #spent: BudgetReason | undefined
  #stopped = false
  /** Whether the previous step had calls over the budget. */
  #refusedBefore = false
  #failure: ConversationFailure | undefined

  constructor(scope: Scope, request: ConversationRequest, resumed: readonly ResumedPart[]) {
    const { messages, steps, instructions, context } = request.conversation
    this.#scope = scope
    this.#request = request
    this.#resumed = resumed
    this.#transcript = createTranscript(messages)
    this.#steps = [...steps]
    this.#offset = steps.length
    this.#instructions = instructions
    this.#context = context
    this.#spent = scope.shared.meter.spent()
  }

  /** Runs until the conversation ends, pauses or fails. Never throws. */
  async run(): Promise<ConversationEnd> {
    if (this.#spent === undefined) {
      try {
        await this.#drive()
      } catch (error) {
        this.#fail('model_failed', error)
      }
    }
    return {
      end: this.#end(),
      conversation: {
        messages: this.#transcript.messages,
        steps: this.#steps,
        pending: this.#pending,
        instructions: this.#instructions,
        context: this.#context,
      },
    }
  }

  #end(): ConversationEnd['end'] {
    const { signal } = this.#scope
    if (this.#failure) {
      const { reason, error } = this.#failure
      return { kind: 'failed', reason, error: signal.aborted ? signal.reason : error }
    }
    if (this.#pending.length > 0) return { kind: 'paused' }
    if (this.#spent !== undefined) return { kind: 'failed', reason: this.#spent, error: undefined }
    return { kind: this.#stopped ? 'stopped' : 'finished' }
  }

  /** Sets the failure. Only the first one counts. */
  #fail(reason: ConversationFailure['reason'], error: unknown): void {
    this.#failure ??= { reason, error }
  }

  async #drive(): Promise<void> {
    const { shared, view, model, calls, signal } = this.#scope
    const { onStream } = this.#request
    const { prepareStep, ...guarded } = await guard(shared.gate, view, {
      ...shared.offering,
      runId: shared.runId,
      ...shared.words,
      hooks: calls.hooks,
      extend: () => contextOf(this.#scope),
      prepareStep: this.#prepareStep(),
      onCall: (event) => this.#called(event),
      onWarning: shared.warn,
    })
    const options = {
      ...shared.settings,
      model,
      messages: [...this.#transcript.messages],
      abortSignal: signal,
      stopWhen: ({ steps }: { steps: SdkStep[] }) => this.#shouldStop(steps),
      onStepEnd: (step: SdkStep) => this.#stepped(step),
      ...guarded,
      prepareStep: numbered(prepareStep, this.#offset),
    }
    if (!onStream) {
      await generateText(options)
      return
    }
    const stream = streamText({
      ...options,
      ...(this.#resumed.length > 0 && { experimental_transform: withResumed(this.#resumed) }),
      onError: ({ error }) => this.#fail('model_failed', error),
      onAbort: () => this.#fail('model_failed', signal.reason),
    })
    onStream(stream as unknown as AnyStream)
    await stream.consumeStream()
  }

  #prepareStep(): (sdk: Parameters<SdkPrepare>[0] & GuardedStep) => Promise<PrepareStepResult<ToolSet>> {
    const { shared, view, model: ownModel, events, paused } = this.#scope
    const steps = this.#hostSteps()
    return async (sdk) => {
      // Before the first step, the SDK may have run calls, such as those that the messages claim to be approved.
      if (sdk.steps.length === 0) this.#transcript.reset(sdk.messages)
      const facts = await factsOf(view, { id: shared.runId, ...shared.words })
      const step = await steps?.next({ messages: sdk.messages, facts })
      for (const warning of step?.warnings ?? []) shared.warn(warning)
      const now = view.narrow({ facts })
      const tools = (step?.view ?? now).ids
      const model = (step?.model as LanguageModel | undefined) ?? ownModel
      const catalog = await this.#hostsOwn(async () => shared.catalogOf(now))
      shared.meter.step()
      this.#ended.clear()
      // No earlier call waits any longer: the SDK has run those that the messages approve.
      paused.clear()
      const instructions = joinInstructions(this.#instructions, catalog)
      events.emit({ type: 'step-started', step: sdk.stepNumber, model: modelNameOf(model), tools })
      return {
        ...step?.options,
        model,
        ...(instructions === undefined ? {} : { instructions }),
        ...(step || facts ? { activeTools: tools } : {}),
      }
    }
  }

  /** Returns the steps that the host's `prepareStep` prepares. Each has the calls of earlier steps. */
  #hostSteps(): Pick<Steps, 'next'> | undefined {
    const { prepareStep } = this.#request
    if (!prepareStep) return undefined
    const { view, shared } = this.#scope
    const earlier = [...this.#steps]
    const steps = createSteps<unknown, unknown>(view, {
      prepareStep,
      instructions: this.#instructions,
      context: this.#context,
      state: shared.state,
      earlier,
    })
    let recorded = earlier.length
    return {
      next: async (about): Promise<Step> => {
        for (const { calls } of this.#steps.slice(recorded)) for (const call of calls) steps.record(call)
        recorded = this.#steps.length
        const step = await this.#hostsOwn(() => steps.next(about))
        this.#instructions = step.instructions
        this.#context = step.context
        return step
      },
    }
  }

  #called(event: GuardedCallEvent): void {
    const { calls, paused, events } = this.#scope
    const { tool, callId, outcome } = event
    this.#ended.set(callId, event)
    calls.ended(outcome, { free: paused.has(callId) })
    events.emit(toDecided(tool, event.stepNumber ?? this.#steps.length, outcome))
  }

  #stepped(step: SdkStep): void {
    const { shared, events, paused } = this.#scope
    const usage = usageOf(step)
    shared.meter.tokens(usage.total)
    shared.addUsage(usage)
    this.#pending = shared.offering.approvals === 'tell' ? [] : pendingOf(step, this.#ended, paused)
    // The host supplies the results of tools that are executed elsewhere.
    this.#stopped = hasUnanswered(step)
    const { text, finishReason, response } = step
    if (finishReason === 'error') this.#fail('model_failed', new Error('the provider ended its answer with an error'))
    this.#transcript.add(response.messages, new Set(this.#pending.map(({ callId }) => callId)))
    const stepNumber = this.#steps.length
    const calls = callsOf(step, this.#ended)
    this.#steps.push({ stepNumber, model: response.modelId, text, calls, finishReason, usage })
    events.emit({ type: 'step-ended', step: stepNumber, calls, usage })
  }

  /** Whether the loop must stop. Checked before each model request. */
  async #shouldStop(steps: SdkStep[]): Promise<boolean> {
    if (this.#pending.length > 0) return true
    const { stopWhen, shared, calls } = this.#scope
    const stops = await this.#hostsOwn(() => Promise.all(stopWhen.map(async (condition) => condition({ steps }))))
    this.#stopped = stops.some((stop) => stop)
    if (this.#stopped) return true
    this.#spent = shared.meter.spent() ?? this.#overCalls(calls.refusedAny())
    return this.#spent !== undefined
  }

  /** Returns `budget_calls` if the model still calls after the call budget is used up. */
  #overCalls(refused: boolean): BudgetReason | undefined {
    const wasRefused = this.#refusedBefore
    this.#refusedBefore = refused
    return refused && wasRefused ? 'budget_calls' : undefined
  }

  /** Runs the host's own code. Its errors are not failures of the model. */
  async #hostsOwn<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.#fail('step_failed', error)
      throw error
    }
  }
}

/** Continues the step numbers of a resumed run. */
function numbered(prepareStep: SdkPrepare, offset: number): SdkPrepare {
  return offset === 0 ? prepareStep : (sdk) => prepareStep({ ...sdk, stepNumber: sdk.stepNumber + offset })
}

function modelNameOf(model: LanguageModel): string {
  return typeof model === 'string' ? model : model.modelId
}

/**
 * Runs both functions, the planner's first. The tool lists of both narrow. For other fields the later answer applies.
 */
export function joinPrepareSteps(
  first: AnyPrepareStep | undefined,
  second: AnyPrepareStep | undefined,
): AnyPrepareStep | undefined {
  if (!first || !second) return first ?? second
  return async (context) => {
    const a = await first(context)
    const b = await second({
      ...context,
      ...(a?.context !== undefined && { context: a.context }),
      ...(a?.instructions !== undefined && { instructions: a.instructions }),
    })
    if (isNothing(a) || isNothing(b)) return a ?? b
    // An invalid answer is passed on, so that the step rejects it.
    if (typeof a !== 'object') return a
    if (typeof b !== 'object') return b
    const given = new Map([...Object.entries(a), ...Object.entries(b).filter(([, value]) => value !== undefined)])
    const options = { ...a.options, ...b.options }
    return { ...Object.fromEntries(given), options, activeTools: inBoth(a.activeTools, b.activeTools) }
  }
}

type ListChange = Awaited<ReturnType<AnyPrepareStep>>
type OfferedList = NonNullable<ListChange>['activeTools']

function isNothing(change: ListChange | null): change is undefined {
  return change === undefined || change === null
}

function inBoth(a: OfferedList, b: OfferedList): OfferedList {
  const wrong = [a, b].find((list) => list !== undefined && !Array.isArray(list))
  if (wrong !== undefined) return wrong
  return a && b ? a.filter((id) => b.includes(id)) : (a ?? b)
}
