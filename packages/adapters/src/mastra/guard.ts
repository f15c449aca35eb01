import type { ToolsInput } from '@mastra/core/agent'
import { RequestContext } from '@mastra/core/request-context'
import type { ToolBeforeHookResult, ToolHookContext } from '@mastra/core/tools'
import type { Gate, View } from '@toolgate/core'
import { fieldsOf, isFunction } from '../shared/fields.ts'
import { createUngoverned } from '../shared/guard-options.ts'
import { Calls, RefusedMastraCall } from './calls.ts'
import type { MastraTool } from './import-tools.ts'
import { type AnyGate, checkOptions, type Guarded, type GuardOptions, type GuardRequest } from './options.ts'
import { createProcessor } from './processor.ts'
import { createRequests, type Requests } from './runs.ts'
import { createWrappedTools, type WrappedTools } from './wrapped.ts'

/** The parts of a guarded agent, for the functions that resume its runs. */
export interface Guarding {
  readonly gate: AnyGate
  readonly requests: Requests
  readonly calls: Calls
  /** Whether a tool runs without the gate, by its name. */
  readonly isUngoverned: (name: string) => boolean
}

/**
 * Returns the options of a Mastra agent. Spread them into its configuration.
 *
 * Each request gets the tools that its caller sees, and each step those visible by then. The tool's own `execute` passes a
 * call to the gate. One agent serves any number of callers at once.
 *
 * @example
 * new Agent({ id, name, instructions, model, ...guard(gate, { caller: ({ requestContext }) => requestContext.get('caller') }) })
 */
export function guard<Name extends string, Native>(
  gate: Gate<Name, Native>,
  options: GuardOptions<NoInfer<Name>>,
): Guarded {
  checkOptions(gate, options)
  const requests = createRequests(gate, options)
  const calls = new Calls(gate, options)
  const wrapped = createWrappedTools(gate, requests, calls)
  const isUngoverned = createUngoverned(options.ungoverned)
  const processor = createProcessor({ requests, calls, wrapped, isUngoverned })
  guardings.set(processor, { gate, requests, calls, isUngoverned })
  const offer = createOffer(gate, calls, wrapped)
  return {
    tools: async ({ requestContext }: GuardRequest) => offer((await requests.open(requestContext)).view),
    hooks: { beforeToolCall: (call) => refuseForeign(call, { requests, calls, isUngoverned }) },
    inputProcessors: [processor],
  }
}

/** Returns the guard behind one of its processors. */
export function guardingOf(processor: object | null): Guarding | undefined {
  return processor === null ? undefined : guardings.get(processor)
}

const guardings = new WeakMap<object, Guarding>()

/** Returns the tools of a view: the visible ones, and those that a later step may show. */
function createOffer(gate: AnyGate, calls: Calls, wrapped: WrappedTools): (view: View) => ToolsInput {
  /** Equal callers share a view until something changes. */
  const offered = new WeakMap<View, ToolsInput>()
  function make(view: View): ToolsInput {
    const { toName } = calls.names()
    const tools = new Map<string, MastraTool>()
    for (const tool of gate.catalog.snapshot().tools) {
      const name = toName(tool.id)
      if (name === undefined) continue
      const { outcome, answers } = view.explain(tool.id)
      // The tool waits, for example for a lock. Mastra takes no more tools later, so it gets this one now.
      const mayOpen =
        outcome === 'wait' && answers.some(({ layer, outcome: word }) => layer === 'step' && word === 'allow')
      if (view.has(tool.id) || mayOpen)
        tools.set(name, wrapped.wrap(tool, { name, asks: answers.some((answer) => answer.outcome === 'ask') }))
    }
    return Object.freeze(Object.fromEntries(tools))
  }
  return (view) => {
    const known = offered.get(view) ?? make(view)
    offered.set(view, known)
    return known
  }
}

/** Returns the context of a hook, which Mastra types as `any`. */
function readContext(context: unknown): {
  readonly requestContext: RequestContext
  readonly callId: string | undefined
  readonly signal: AbortSignal | undefined
} {
  const { requestContext, toolCallId, abortSignal } = fieldsOf(context)
  return {
    requestContext: isRequestContext(requestContext) ? requestContext : new RequestContext(),
    callId: typeof toolCallId === 'string' ? toolCallId : undefined,
    signal: isAbortSignal(abortSignal) ? abortSignal : undefined,
  }
}

/** Checks the shape, because the host may have another copy of `@mastra/core`. */
function isRequestContext(value: unknown): value is RequestContext {
  const { get, set, entries } = fieldsOf(value)
  return isFunction(get) && isFunction(set) && isFunction(entries)
}

/** Checks the shape, because a signal may come from another realm. */
function isAbortSignal(value: unknown): value is AbortSignal {
  const { aborted, addEventListener, removeEventListener } = fieldsOf(value)
  return typeof aborted === 'boolean' && isFunction(addEventListener) && isFunction(removeEventListener)
}

interface MastraPorts {
  readonly requests: Requests
  readonly calls: Calls
  readonly isUngoverned: (name: string) => boolean
}

/** Refuses calls of tools from elsewhere, and calls of hidden tools by name. */
async function refuseForeign(
  { toolName: name, input, context }: ToolHookContext,
  { requests, calls, isUngoverned }: MastraPorts,
): Promise<ToolBeforeHookResult | undefined> {
  const id = calls.names().toId(name)
  if (id === undefined && isUngoverned(name)) return undefined
  const { requestContext, callId, signal } = readContext(context)
  const request = await requests.current(requestContext)
  if (id !== undefined && request.view.explain(id).outcome !== 'deny') return undefined
  const outcome = await calls.make(request, {
    name,
    input,
    callId,
    signal,
    place: calls.placeOf(requestContext, callId),
  })
  if (outcome.status !== 'done') throw new RefusedMastraCall(outcome)
  return { proceed: false, output: outcome.output }
}

/** A question of Mastra's `ToolSearchProcessor`: may it find, load or send this tool? */
export interface SearchQuestion {
  readonly toolName: string
  readonly requestContext?: RequestContext | undefined
}

/**
 * Returns the `filter` of a `ToolSearchProcessor`: it finds and loads the tools that the caller sees at that moment. Let it
 * search the tools of `guard` (`includeResolvedTools: true, tools: {}`), and put it before `guard`'s processor.
 */
export function searchFilter<Name extends string, Native>(
  gate: Gate<Name, Native>,
  options: GuardOptions<NoInfer<Name>>,
): (question: SearchQuestion) => Promise<boolean> {
  checkOptions(gate, options)
  const requests = createRequests(gate, options)
  const calls = new Calls(gate, options)
  return async ({ toolName, requestContext = new RequestContext() }) => {
    const id = calls.names().toId(toolName)
    if (id === undefined) return false
    const { view } = await requests.current(requestContext)
    return view.narrow({}).has(id)
  }
}
