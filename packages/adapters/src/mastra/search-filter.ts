import type { Gate } from '@toolgate/core'
import { RequestContext } from '@mastra/core/request-context'
import { createCalls } from './calls.ts'
import { type AnyGate, checkOptions, type GuardOptions } from './options.ts'
import { createRequests } from './requests.ts'

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
  const anyGate = gate as unknown as AnyGate
  const requests = createRequests(anyGate, options)
  const calls = createCalls(anyGate)
  return async ({ toolName, requestContext = new RequestContext() }) => {
    const id = calls.names().toId(toolName)
    if (id === undefined) return false
    const { view } = await requests.current(requestContext)
    return view.narrow({}).has(id)
  }
}
