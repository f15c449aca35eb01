import { guard, type GuardedCallEvent, type GuardedStep } from '@toolgate/adapters/ai-sdk'
import { createSteps, type StepCall } from '@toolgate/core'
import {
  generateText,
  type LanguageModel,
  type ModelMessage,
  type PrepareStepFunction,
  type PrepareStepResult,
  type StepResult,
  streamText,
  type ToolSet,
} from 'ai'
import { isInputRequest } from './ask-for-input.ts'
import type { BudgetReason } from './budgets.ts'
import { toDecided } from './events.ts'
import { joinInstructions } from './catalog-prompt.ts'
import type { LevelState, PendingState, WaitingCall } from './pause.ts'
import type { RunStep, Usage } from './result.ts'
import { type AnyStream, contextOf, type LevelEnd, type LevelRequest, type Scope } from './scope.ts'
import { createTranscript } from './transcript.ts'

/** A conversation in which nothing waits. */
export interface LoopRequest extends Pick<LevelRequest, 'level' | 'prepareStep' | 'onStream'> {
  readonly scope: Scope
}

type SdkStep = StepResult<ToolSet>
type SdkPrepare = PrepareStepFunction<ToolSet>

/** Runs the SDK's own loop over a view until it ends, pauses or fails. Never throws. */
export async function runLoop(request: LoopRequest): Promise<LevelEnd> {
  const loop = new Loop(request)
  return loop.run()
}

/** What is known of one loop while it runs. */
class Loop {
  readonly #request: LoopRequest
  readonly #scope: Scope
  readonly #transcript: ReturnType<typeof createTranscript>
  readonly #steps: RunStep[]
  /** Calls of the step under way that are over, by call id. */
  readonly #ended = new Map<string, GuardedCallEvent>()
  readonly #offset: number
  #instructions: string | undefined
  #context: unknown
  #pending: readonly PendingState[] = []
  #spent: BudgetReason | undefined
  #stopped = false
  /** Whether calls over the budget were refused in the step before. */
  #refusedBefore = false
  #failure: { readonly reason: 'model_failed' | 'step_failed'; readonly error: unknown } | undefined

  constructor(request: LoopRequest) {
    const { level, scope } = request
    this.#request = request
    this.#scope = scope
    this.#transcript = createTranscript(level.messages)
    this.#steps = [...level.steps]
    this.#offset = level.steps.length
    this.#instructions = level.instructions
    this.#context = level.context
  }

  async run(): Promise<LevelEnd> {
    this.#spent = this.#scope.shared.meter.spent()
    if (this.#spent === undefined) {
      try {
        await this.#drive()
      } catch (error) {
        this.#failure ??= { reason: 'model_failed', error }
      }
    }
    return { end: this.#end(), level: this.#level() }
  }

  #end(): LevelEnd['end'] {
    const { signal } = this.#scope
    if (this.#failure) {
      const { reason, error } = this.#failure
      return { kind: 'failed', reason, error: signal.aborted ? signal.reason : error }
    }
    if (this.#pending.length > 0) return { kind: 'paused' }
    if (this.#spent !== undefined) return { kind: 'failed', reason: this.#spent, error: undefined }
    return { kind: this.#stopped ? 'stopped' : 'finished' }
  }

  #level(): LevelState {
    return {
      messages: this.#transcript.messages,
      steps: this.#steps,
      instructions: this.#instructions,
      context: this.#context,
      pending: this.#pending,
    }
  }

  async #drive(): Promise<void> {
    const { scope, onStream } = this.#request
    const { shared, view, calls, signal } = scope
    const guarded = await guard(shared.gate, view, {
      ...shared.offering,
      runId: shared.runId,
      hooks: calls.hooks,
      extend: () => contextOf(scope),
      prepareStep: this.#createPrepareStep(),
      onCall: (event) => this.#called(event),
      onWarning: shared.warn,
    })
    const options = {
      ...shared.settings,
      model: scope.model,
      messages: [...this.#transcript.messages],
      abortSignal: signal,
      stopWhen: (given: { steps: SdkStep[] }) => this.#shouldStop(given.steps),
      onStepEnd: (step: SdkStep) => this.#stepped(step),
      ...guarded,
      prepareStep: this.#numbered(guarded.prepareStep as SdkPrepare),
    }
    if (!onStream) {
      await generateText(options as Parameters<typeof generateText>[0])
      return
    }
    const stream = streamText({
      ...(options as Parameters<typeof streamText>[0]),
      onError: ({ error }) => void (this.#failure ??= { reason: 'model_failed', error }),
      onAbort: () => void (this.#failure ??= { reason: 'model_failed', error: signal.reason }),
    })
    onStream(stream as unknown as AnyStream)
    await stream.consumeStream()
  }

  /** The steps of a run that goes on have the numbers that come next. */
  #numbered(prepareStep: SdkPrepare): SdkPrepare {
    if (this.#offset === 0) return prepareStep
    return (sdk) => prepareStep({ ...sdk, stepNumber: sdk.stepNumber + this.#offset })
  }

  #createPrepareStep(): (sdk: Parameters<SdkPrepare>[0] & GuardedStep) => Promise<PrepareStepResult<ToolSet>> {
    const { scope, prepareStep } = this.#request
    const { shared, view } = scope
    const steps = prepareStep
      ? createSteps<unknown, unknown>(view, {
          prepareStep,
          instructions: this.#instructions,
          context: this.#context,
          state: shared.state,
          earlier: this.#steps,
        })
      : undefined
    let recorded = this.#steps.length
    return async (sdk) => {
      // What came before the first step, such as approvals that the messages claim, is in the SDK's.
      if (sdk.steps.length === 0) this.#transcript.reset(sdk.messages)
      for (const step of this.#steps.slice(recorded)) for (const call of step.calls) steps?.record(call)
      recorded = this.#steps.length
      const step = await this.#hostsOwn(() => steps?.next())
      this.#instructions = step?.instructions ?? this.#instructions
      this.#context = step?.context ?? this.#context
      for (const warning of step?.warnings ?? []) shared.warn(warning)
      const now = view.narrow({})
      const seen = step?.view ?? now
      const model = (step?.model as LanguageModel | undefined) ?? scope.model
      shared.meter.step()
      this.#ended.clear()
      scope.teller.tell({
        type: 'step-started',
        step: sdk.stepNumber,
        model: modelNameOf(model),
        tools: seen.ids,
      })
      return {
        ...step?.options,
        model,
        instructions: joinInstructions(this.#instructions, shared.catalogOf(now)),
        ...(step ? { activeTools: seen.ids } : {}),
      } as PrepareStepResult<ToolSet>
    }
  }

  #called(event: GuardedCallEvent): void {
    const { calls, paused, teller } = this.#scope
    const { tool, callId, outcome } = event
    this.#ended.set(callId, event)
    calls.ended(outcome, { free: paused.has(callId) })
    teller.tell(toDecided(tool, event.stepNumber ?? this.#steps.length, outcome))
  }

  #stepped(step: SdkStep): void {
    const { shared, teller } = this.#scope
    const usage = usageOf(step)
    shared.meter.tokens(usage.total)
    shared.addUsage(usage)
    this.#pending = this.#pendingOf(step)
    // Calls of tools that are executed elsewhere: their results are the host's to bring.
    this.#stopped = hasUnanswered(step)
    if (step.finishReason === 'error') this.#failure ??= { reason: 'model_failed', error: new Error(FAULTY) }
    this.#transcript.add(step.response.messages, new Set(this.#pending.map(({ callId }) => callId)))
    const stepNumber = this.#steps.length
    const calls = this.#callsOf(step)
    const { text, finishReason } = step
    this.#steps.push({ stepNumber, model: step.response.modelId, text, calls, finishReason, usage })
    teller.tell({ type: 'step-ended', step: stepNumber, calls, usage })
  }

  /** In the order in which the model made them. */
  #callsOf({ toolCalls }: SdkStep): readonly StepCall[] {
    return toolCalls.flatMap(({ toolCallId }) => {
      const event = this.#ended.get(toolCallId)
      return event ? [{ tool: event.tool, callId: toolCallId, status: event.status }] : []
    })
  }

  /** What of a step has no result yet: what waits for an approval, for an input, or in a sub-agent. */
  #pendingOf({ content, toolCalls, response }: SdkStep): readonly PendingState[] {
    const outputs = new Map(
      content.flatMap((part) => (part.type === 'tool-result' ? [[part.toolCallId, part.output]] : [])),
    )
    const written = writtenInputs(response.messages)
    return toolCalls.flatMap(({ toolCallId: callId, toolName: name, input: parsed }): readonly PendingState[] => {
      const event = this.#ended.get(callId)
      if (event === undefined) return []
      const input = written.has(callId) ? written.get(callId) : parsed
      const call: WaitingCall = { callId, tool: event.tool, name, input }
      const level = this.#scope.paused.get(callId)
      if (level) return [{ ...call, kind: 'agent', level }]
      if (event.approval) return [{ ...call, kind: 'approval', approvalId: event.approval.id }]
      const output: unknown = outputs.get(callId)
      if (isInputRequest(output)) return [{ ...call, kind: 'input', question: output.question, schema: output.schema }]
      return []
    })
  }

  /** Asked where the model would be asked again. */
  async #shouldStop(steps: SdkStep[]): Promise<boolean> {
    if (this.#pending.length > 0) return true
    const { stopWhen, shared, calls } = this.#scope
    const stops = await this.#hostsOwn(() => Promise.all(stopWhen.map(async (condition) => condition({ steps }))))
    if (stops.some((stop) => stop)) return (this.#stopped = true)
    this.#spent = shared.meter.spent() ?? this.#overCalls(calls.refusedAny())
    return this.#spent !== undefined
  }

  /** A model that goes on calling after it was told that it has used its calls is ended. */
  #overCalls(refused: boolean): BudgetReason | undefined {
    const wasTold = this.#refusedBefore
    this.#refusedBefore = refused
    return refused && wasTold ? 'budget_calls' : undefined
  }

  async #hostsOwn<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.#failure ??= { reason: 'step_failed', error }
      throw error
    }
  }
}

const FAULTY = 'the provider ended its answer with an error'

function hasUnanswered({ content, toolCalls }: SdkStep): boolean {
  const answered = new Set(
    content.flatMap((part) => {
      if (part.type === 'tool-result' || part.type === 'tool-error') return [part.toolCallId]
      return part.type === 'tool-approval-response' && !part.approved ? [part.toolCall.toolCallId] : []
    }),
  )
  return toolCalls.some(({ toolCallId, providerExecuted }) => !providerExecuted && !answered.has(toolCallId))
}

/** The inputs of calls that wait, as the model wrote them, where a schema has made something else of them. */
function writtenInputs(messages: readonly ModelMessage[]): ReadonlyMap<string, unknown> {
  const written = new Map<string, unknown>()
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const part of content)
      if (part.type === 'tool-approval-request' && 'inputSchemaInput' in part)
        written.set(part.toolCallId, part.inputSchemaInput)
  }
  return written
}

function usageOf({
  usage: { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens },
}: SdkStep): Usage {
  return { input: inputTokens, output: outputTokens, total: totalTokens }
}

function modelNameOf(model: LanguageModel): string {
  return typeof model === 'string' ? model : model.modelId
}
