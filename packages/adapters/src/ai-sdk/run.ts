import type { CallOutcome, CallRefused, CallWaiting, Hooks, View } from '@toolgate/core'
import type { HooksInput } from '@toolgate/core/call'
import type { LanguageModel, ToolSet } from 'ai'
import { createOnCall, createWarn, type GuardedCall, GuardedRun } from '../shared/runs.ts'
import { answeredCalls } from './apply-approvals.ts'
import { type Offering, offeringOf, widenOffering, type WireTool } from './offering.ts'
import type { AnyGate, GuardOptions } from './options.ts'
import { asWritten } from './schemas.ts'

/** One prepared step of the loop. */
interface OpenStep {
  readonly view: View
  readonly stepNumber: number
  readonly model: string | undefined
}

/** A call that the SDK's loop makes. */
export interface LoopCall {
  readonly toolName: string
  readonly toolCallId: string
  readonly input: unknown
  /** The step's messages. They identify the step, because several loops may use the same tools at once. */
  readonly messages: readonly unknown[] | undefined
  readonly abortSignal?: AbortSignal | undefined
  readonly context?: unknown
  readonly malformed?: string | undefined
  readonly hooks?: HooksInput | undefined
}

/** The answer of the host's own `toolApproval`. */
interface HostApproval {
  readonly mustBeAsked: boolean
}

interface LoopRunParts {
  readonly gate: AnyGate
  readonly view: View
  readonly options: GuardOptions
  /** Returns a tool for the SDK's loop. */
  readonly wrap: (run: LoopRun, tool: WireTool) => object
}

/** The state that the parts of a guard share: one run, its tools and its steps. */
export class LoopRun {
  readonly gate: AnyGate
  readonly view: View
  readonly options: GuardOptions
  /** The tools by wire name. The SDK's loop reads this object in each step. */
  readonly tools: Record<string, object> = {}
  /** The mark on each tool of this run. */
  readonly mark: object = Object.freeze({})
  /** Why the tools of an SDK call cannot be trusted. The key is the array of the call's messages. */
  readonly spoiled = new WeakMap<object, string>()
  readonly warn: (text: string) => void
  readonly #run: GuardedRun
  readonly #wrap: LoopRunParts['wrap']
  readonly #first: Offering
  #offering: Offering
  #offeredTo: View
  /** Open steps by their messages. Several loops may use the same tools at once, each with its own steps. */
  readonly #steps = new WeakMap<object, OpenStep>()
  #latestStep: OpenStep | undefined
  readonly #hostApprovals = new WeakMap<object, Map<string, HostApproval>>()

  constructor({ gate, view, options, wrap }: LoopRunParts) {
    const { runId: id, approvals, userWords, earlierResults, resumed, onCall, onWarning } = options
    this.gate = gate
    this.view = view
    this.options = options
    this.warn = createWarn(onWarning)
    this.#wrap = wrap
    this.#first = offeringOf(view, options.acceptUnenforceable)
    this.#offering = this.#first
    this.#offeredTo = view
    this.#run = new GuardedRun({
      gate,
      view,
      names: {
        toId: (name) => this.#offering.byName.get(name)?.id,
        toName: (tool) => this.#offering.byId.get(tool)?.name,
      },
      id,
      // Without pauses no run is resumed, so the next run that makes the call may use an approval.
      bindsApprovals: id !== undefined && approvals !== 'tell',
      words: { userWords, earlierResults },
      resumed,
      onCall: createOnCall(onCall, this.warn),
    })
    this.#fill()
  }

  offered(name: string): WireTool | undefined {
    return this.#offering.byName.get(name)
  }

  /** Offers the tools that a view sees and that were not offered before. */
  offer(seen: View): void {
    if (seen === this.#offeredTo) return
    this.#offeredTo = seen
    const wider = widenOffering(this.#offering, seen, this.options.acceptUnenforceable)
    if (wider === this.#offering) return
    this.#offering = wider
    this.#fill()
  }

  /** Returns the wire names of the offered tools that a view sees; `undefined` if it sees all of them. */
  namesOf(seen: View): readonly string[] | undefined {
    if (seen === this.view && this.#offering === this.#first) return undefined
    const names = seen.ids.flatMap((id) => this.#offering.byId.get(id)?.name ?? [])
    return names.length === this.#offering.all.length ? undefined : names
  }

  openStep(messages: readonly unknown[], step: OpenStep): void {
    this.#latestStep = step
    this.#steps.set(messages, step)
  }

  /** Records the host's answer about a call. If a person must be asked, the call needs an approval. */
  setHostApproval({ messages, toolCallId }: LoopCall, approval: HostApproval): void {
    if (!messages) return
    let approvals = this.#hostApprovals.get(messages)
    if (!approvals) this.#hostApprovals.set(messages, (approvals = new Map()))
    approvals.set(toolCallId, approval)
  }

  hostApprovalOf({ messages, toolCallId }: LoopCall): HostApproval | undefined {
    return messages && this.#hostApprovals.get(messages)?.get(toolCallId)
  }

  /** The messages of a loop before its first step. */
  beginsWith(messages: readonly unknown[]): void {
    this.#run.beginsWith(messages)
  }

  call(call: LoopCall): Promise<CallOutcome> {
    return this.#run.call(this.#toGuarded(call))
  }

  /** Refuses and records a call on behalf of `by`, unless the gate refuses it first. */
  refuse(call: LoopCall, by: string, reason: string | undefined): Promise<CallOutcome> {
    const { hooks = [] } = this.options
    const refusal: Hooks = { name: by, beforeToolCall: () => ({ allow: false, reason }) }
    return this.call({ ...call, hooks: [refusal, ...[hooks].flat()] })
  }

  /** Refuses and records a call of a tool that was not sent. It runs nothing, even if the gate would allow it. */
  refuseUnsent(call: LoopCall): Promise<CallOutcome> {
    return this.call({ ...call, malformed: 'the tool is not offered in this step' })
  }

  async requestApproval(call: LoopCall): Promise<CallRefused | CallWaiting | undefined> {
    const guarded = this.#toGuarded(call)
    const outcome = await this.#run.requestApproval(guarded)
    return outcome && this.#run.report(guarded, outcome)
  }

  #toGuarded(call: LoopCall): GuardedCall {
    // Approved calls run before the first step.
    if (call.messages && answeredCalls(call.messages).length > 0) this.beginsWith(call.messages)
    const answered = answeredCalls(call.messages).find(({ toolCallId }) => toolCallId === call.toolCallId)
    const step = this.#stepOf(call.messages)
    const view = step?.view
    return {
      name: call.toolName,
      input: inputOf(call, answered),
      // Anyone can write messages and send them again, so an approval in the messages never asks a person again.
      spends: answered && true,
      callId: call.toolCallId,
      signal: call.abortSignal,
      context: call.context,
      malformed: call.malformed,
      hooks: call.hooks ?? this.options.hooks,
      view: this.hostApprovalOf(call)?.mustBeAsked ? this.#asking(view ?? this.view, call.toolName) : view,
      step: step?.stepNumber,
      model: step?.model,
    }
  }

  #stepOf(messages: readonly unknown[] | undefined): OpenStep | undefined {
    const step = messages && this.#steps.get(messages)
    // Calls that the messages approve run before the first step.
    return step ?? (answeredCalls(messages).length > 0 ? undefined : this.#latestStep)
  }

  /** Returns a view with a policy that asks a person, if the host wants one to be asked. */
  #asking(view: View, name: string): View {
    const tool = this.offered(name)
    return tool ? view.narrow({ policy: { ask: [tool.id] } }) : view
  }

  /** Fills the tools again, in place and by id, because the SDK reads the same object in each step. */
  #fill(): void {
    const before = new Map(Object.entries(this.tools))
    for (const name of before.keys()) delete this.tools[name]
    for (const tool of this.#offering.all) this.tools[tool.name] = before.get(tool.name) ?? this.#wrap(this, tool)
    for (const warning of this.#offering.warnings) this.warn(warning)
  }
}

/**
 * Returns the input as the model wrote it. The messages of an approved call have the written input and the schema's
 * output.
 */
function inputOf({ input }: LoopCall, answered: { readonly input: unknown } | undefined): unknown {
  const written = asWritten(input)
  return written === input && answered ? answered.input : written
}

/** A step change in the form that the SDK expects. */
export type StepChange = Readonly<Record<string, unknown>> & {
  readonly activeTools?: readonly string[] | undefined
  readonly messages?: readonly unknown[] | undefined
  readonly model?: LanguageModel | undefined
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly type: 'tool'; readonly toolName: string } | undefined
  readonly providerOptions?: Readonly<Record<string, unknown>> | undefined
}

/** The SDK's question about one call. */
export interface ApprovalQuestion {
  readonly toolCall: {
    readonly toolName: string
    readonly toolCallId: string
    readonly input: unknown
    readonly providerExecuted?: boolean | undefined
  }
  readonly tools: ToolSet | undefined
  readonly toolsContext: unknown
  readonly runtimeContext: unknown
  readonly messages: readonly unknown[]
}
