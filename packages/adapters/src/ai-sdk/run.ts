import type { CallOutcome, CallRefused, CallWaiting, Hooks, HooksInput, View } from '@toolgate/core'
import type { ToolExecutionOptions } from 'ai'
import { RefusedCall } from '../shared/refused.ts'
import { createRun, type GuardedCall } from '../shared/run.ts'
import { answeredCalls } from './answers.ts'
import { needsApproval } from './approval.ts'
import { type Offered, offerBrought, offerOwn } from './offered.ts'
import type { AnyGate, GuardOptions } from './options.ts'
import { asWritten } from './schema.ts'

/** One step of the loop, as it was prepared. */
export interface OpenStep {
  readonly view: View
  readonly stepNumber: number
  readonly model: string | undefined
}

/** A call as the SDK's loop makes it. */
export interface LoopCall {
  readonly toolName: string
  readonly toolCallId: string
  readonly input: unknown
  /** Those of the step: by them it is known which step a call is of, as the same tools may be in several loops at once. */
  readonly messages: readonly unknown[] | undefined
  readonly abortSignal?: AbortSignal | undefined
  readonly context?: unknown
  readonly malformed?: string | undefined
  readonly hooks?: HooksInput | undefined
}

/** What the parts of a guard have in common: the run, its tools, and its steps. */
export interface LoopRun {
  readonly gate: AnyGate
  readonly view: View
  readonly options: GuardOptions
  /** By name on the wire: the object that the SDK's loop reads in each step. */
  readonly tools: Record<string, object>
  offered(name: string): Offered | undefined
  nameOf(id: string): string | undefined
  /** Offers what a view sees and was not offered before. */
  offer(view: View): void
  openStep(messages: readonly unknown[], step: OpenStep): void
  stepOf(messages: readonly unknown[] | undefined): OpenStep | undefined
  /** This call runs only with a person's word, whatever the policy says. */
  requireApproval(call: LoopCall): void
  call(call: LoopCall): Promise<CallOutcome>
  /** Refuses, and records, a call in the name of something that has the right to: what the gate would refuse, it does. */
  refuse(call: LoopCall, by: string, reason: string | undefined): Promise<CallOutcome>
  /** Refuses, and records, a call of what was not sent. It runs nothing, also where the gate would let it. */
  refuseUnsent(call: LoopCall): Promise<CallOutcome>
  requestApproval(call: LoopCall): Promise<CallRefused | CallWaiting | undefined>
  warn(text: string): void
}

export function openLoopRun(gate: AnyGate, view: View, options: GuardOptions): LoopRun {
  const tools: Record<string, object> = {}
  const byName = new Map<string, Offered>()
  const byId = new Map<string, Offered>()
  const steps = new WeakMap<object, OpenStep>()
  const asked = new WeakMap<object, Set<string>>()
  const warned = new Set<string>()
  let latest: OpenStep | undefined
  const run = createRun(
    gate,
    view,
    { toId: (name) => byName.get(name)?.id, toName: (id) => byId.get(id)?.name },
    options.runId,
  )

  const warn = (text: string): void => {
    if (warned.has(text)) return
    warned.add(text)
    options.onWarning?.(text)
  }

  const add = (offered: Offered): void => {
    const { id, name } = offered
    const other = byName.get(name)
    if (other && other.id !== id)
      return warn(`"${id}" cannot be offered: on the wire it has the name of "${other.id}".`)
    if (!offered.isEnforceable && !accepts(options.acceptUnenforceable, id))
      return warn(`"${id}" is not offered: it is not executed here, so nothing can stop it (acceptUnenforceable).`)
    byName.set(name, offered)
    byId.set(id, offered)
    tools[name] = arm(offered)
  }

  const arm = (offered: Offered): object =>
    offered.isEnforceable
      ? { ...offered.definition, execute: executeOf(offered), needsApproval: needsApproval(loop, offered.name) }
      : offered.definition

  const executeOf = (offered: Offered) => {
    const start = (input: unknown, execution: ToolExecutionOptions<unknown>): Promise<unknown> =>
      settle(loop.call(toCall(offered, input, execution, options.extend)), execution)
    if (!offered.isGenerator)
      return (input: unknown, execution: ToolExecutionOptions<unknown>) => start(input, execution).then(lastOf)
    return async function* (input: unknown, execution: ToolExecutionOptions<unknown>) {
      const output = await start(input, execution)
      if (isStream(output)) yield* output
      else yield output
    }
  }

  const toGuarded = (call: LoopCall, step: OpenStep | undefined): GuardedCall => ({
    name: call.toolName,
    input: inputOf(call),
    callId: call.toolCallId,
    signal: call.abortSignal,
    context: call.context,
    malformed: call.malformed,
    hooks: call.hooks ?? options.hooks,
    view: viewFor(call, step),
    step: step?.stepNumber,
    model: step?.model,
  })

  /** Where a person must be asked that policy would not ask, policy is made to. */
  const viewFor = ({ messages, toolCallId, toolName }: LoopCall, step: OpenStep | undefined): View | undefined => {
    const id = byName.get(toolName)?.id
    const isAsked = id !== undefined && messages && asked.get(messages)?.has(toolCallId)
    return isAsked ? (step?.view ?? view).narrow({ policy: { ask: [id] } }) : step?.view
  }

  const tell = (call: LoopCall, step: OpenStep | undefined, outcome: CallOutcome): void => {
    const { status, callId } = outcome
    options.onCall?.({
      tool: byName.get(call.toolName)?.id ?? call.toolName,
      callId,
      status,
      stepNumber: step?.stepNumber,
      approval: status === 'waiting' ? outcome.approval : undefined,
    })
  }

  const loop: LoopRun = {
    gate,
    view,
    options,
    tools,
    offered: (name) => byName.get(name),
    nameOf: (id) => byId.get(id)?.name,
    offer(seen) {
      const before = byName.size
      const own = []
      for (const tool of seen.tools) {
        if (byId.has(tool.id)) continue
        const offered = offerBrought(tool)
        if (offered) add(offered)
        else own.push(tool)
      }
      for (const offered of offerOwn(seen, own, warn)) add(offered)
      if (before > 0 || own.length > 0) sort(tools, byName)
    },
    openStep(messages, step) {
      latest = step
      steps.set(messages, step)
    },
    stepOf: (messages) => (messages && steps.get(messages)) ?? (isReplay(messages) ? undefined : latest),
    requireApproval({ messages, toolCallId }) {
      if (!messages) return
      const ids = asked.get(messages) ?? new Set()
      asked.set(messages, ids.add(toolCallId))
    },
    async call(call) {
      const step = loop.stepOf(call.messages)
      const outcome = await run.call(toGuarded(call, step))
      if (options.onCall) tell(call, step, outcome)
      return outcome
    },
    refuse: (call, name, reason) =>
      loop.call({ ...call, hooks: [{ name, beforeToolCall: () => ({ allow: false, reason }) }, ...hooksOf(options)] }),
    refuseUnsent: (call) => loop.call({ ...call, malformed: 'the tool is not offered in this step' }),
    async requestApproval(call) {
      const step = loop.stepOf(call.messages)
      const outcome = await run.requestApproval(toGuarded(call, step))
      if (outcome && options.onCall) tell(call, step, outcome)
      return outcome
    },
    warn,
  }
  loop.offer(view)
  return loop
}

function toCall(
  { name }: Offered,
  input: unknown,
  execution: ToolExecutionOptions<unknown>,
  extend: GuardOptions['extend'],
): LoopCall {
  const { toolCallId, messages, abortSignal } = execution
  const context = extend ? { ...execution, ...extend(execution) } : execution
  return { toolName: name, toolCallId, input, messages, abortSignal, context }
}

/** The SDK tells the model what an error says of itself. */
async function settle(calling: Promise<CallOutcome>, { abortSignal }: ToolExecutionOptions<unknown>): Promise<unknown> {
  const outcome = await calling
  if (outcome.status === 'done') return outcome.output
  if (outcome.status === 'failed' && abortSignal?.aborted) throw outcome.error
  throw new RefusedCall(outcome)
}

/** An iterable that comes too late to be passed on item by item: the SDK takes the last one for the output. */
function lastOf(output: unknown): unknown {
  return isStream(output) ? drain(output) : output
}

async function drain(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown
  for await (const item of stream) last = item
  return last
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

/** Whether the SDK is about to run, before any step, what messages say was approved in an earlier run. */
function isReplay(messages: readonly unknown[] | undefined): boolean {
  return answeredCalls(messages).length > 0
}

/** As the model wrote it: an approved call comes from the messages, where both that and what a schema made of it stand. */
function inputOf({ toolCallId, input, messages }: LoopCall): unknown {
  const written = asWritten(input)
  if (written !== input) return written
  const answered = answeredCalls(messages).find((call) => call.toolCallId === toolCallId)
  return answered ? answered.input : input
}

function hooksOf({ hooks }: GuardOptions): readonly Hooks[] {
  if (hooks === undefined) return []
  return Array.isArray(hooks) ? (hooks as readonly Hooks[]) : [hooks as Hooks]
}

function accepts(accepted: GuardOptions['acceptUnenforceable'], id: string): boolean {
  return accepted === true || (Array.isArray(accepted) && accepted.includes(id))
}

/** The order is that of the ids, whatever came when: equal views give equal requests. */
function sort(tools: Record<string, object>, byName: ReadonlyMap<string, Offered>): void {
  const entries = [...byName].toSorted(([, a], [, b]) => (a.id < b.id ? -1 : 1))
  for (const [name] of entries) {
    const tool = tools[name] as object
    delete tools[name]
    tools[name] = tool
  }
}
