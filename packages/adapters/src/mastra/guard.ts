import type { ToolsInput } from '@mastra/core/agent'
import { RequestContext } from '@mastra/core/request-context'
import type { ToolBeforeHookResult, ToolHookContext } from '@mastra/core/tools'
import type { Gate, View } from '@toolgate/core'
import { fieldsOf } from '../shared/fields.ts'
import { createUngoverned } from '../shared/guard-options.ts'
import { Calls, RefusedMastraCall } from './calls.ts'
import type { MastraTool } from './import-tools.ts'
import { type AnyGate, checkOptions, type Guarded, type GuardOptions, type GuardRequest } from './options.ts'
import { createProcessor } from './processor.ts'
import { createRequests, type Requests } from './runs.ts'
import { createWrappedTools, type WrappedTools } from './wrapped.ts'

/** What stands behind a guarded agent, for what resumes its runs. */
export interface Guarding {
  readonly gate: AnyGate
  readonly requests: Requests
  readonly calls: Calls
}

/**
 * Gives what an agent of Mastra needs, to be spread into its configuration.
 *
 * Each request is given the tools that its caller sees, each step what may be seen by then, and a call goes through the
 * gate inside the tool itself. One agent serves any number of callers at once.
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
  guardings.set(processor, { gate, requests, calls })
  const offer = createOffer(gate, calls, wrapped)
  return {
    tools: async ({ requestContext }: GuardRequest) => offer((await requests.open(requestContext)).view),
    hooks: { beforeToolCall: (call) => refuseForeign(call, { requests, calls, isUngoverned }) },
    inputProcessors: [processor],
  }
}

/** Gives what stands behind a processor that `guard` gave. */
export function guardingOf(processor: object | null): Guarding | undefined {
  return processor === null ? undefined : guardings.get(processor)
}

const guardings = new WeakMap<object, Guarding>()

/** Gives the tools of a view: those that are seen, and those that a later step may see. */
function createOffer(gate: AnyGate, calls: Calls, wrapped: WrappedTools): (view: View) => ToolsInput {
  /** Equal callers share a view for as long as nothing changes. */
  const offered = new WeakMap<View, ToolsInput>()
  function make(view: View): ToolsInput {
    const { toName } = calls.names()
    const tools = new Map<string, MastraTool>()
    for (const tool of gate.catalog.snapshot().tools) {
      const name = toName(tool.id)
      if (name === undefined) continue
      const { outcome, answers } = view.explain(tool.id)
      // Held back for the moment, as by a lock: Mastra takes no tools later that it is not given now.
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

/** Mastra types the context of a hook as anything. */
function readContext(context: unknown): {
  readonly requestContext: RequestContext
  readonly callId: string | undefined
  readonly signal: AbortSignal | undefined
} {
  const { requestContext, toolCallId, abortSignal } = fieldsOf(context)
  return {
    requestContext: requestContext instanceof RequestContext ? requestContext : new RequestContext(),
    callId: typeof toolCallId === 'string' ? toolCallId : undefined,
    signal: abortSignal instanceof AbortSignal ? abortSignal : undefined,
  }
}

interface HookPorts {
  readonly requests: Requests
  readonly calls: Calls
  readonly isUngoverned: (name: string) => boolean
}

/** Stops what came beside the gate's tools, and what goes by the name of one that is hidden. */
async function refuseForeign(
  { toolName: name, input, context }: ToolHookContext,
  { requests, calls, isUngoverned }: HookPorts,
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

/** What Mastra's `ToolSearchProcessor` asks about a tool before it finds, loads or sends it. */
export interface SearchQuestion {
  readonly toolName: string
  readonly requestContext?: RequestContext | undefined
}

/**
 * Gives the `filter` of a `ToolSearchProcessor`: it finds and loads what the caller sees by then, and nothing else. Let it
 * search the tools that `guard` gives (`includeResolvedTools: true, tools: {}`), and put it before `guard`'s processor.
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
