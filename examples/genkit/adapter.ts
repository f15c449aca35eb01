// An adapter for Genkit, which has none here: the page "Any other framework" of the guide explains how to write one.
import { createRun, type CreateRunOptions, type RunTool } from '@toolgate/adapters/run'
import type { Caller, Gate } from '@toolgate/core'
import { dynamicTool, generateMiddleware, type MiddlewareRef, type ToolAction, ToolInterruptError } from 'genkit'

/** Takes the calls of names that were not offered. Genkit itself throws, and the generation ends. */
const UNKNOWN = 'unknown_tool'

/** Returns the middleware of one run: `ai.generate({ model, prompt, use: [await guard(gate, caller)] })`. */
export async function guard(gate: Gate, caller: Caller, options?: CreateRunOptions): Promise<MiddlewareRef> {
  const run = await createRun(gate, caller, options)
  const offered = new Map<string, RunTool>()
  const tools: ToolAction[] = []
  let signal: AbortSignal | undefined

  return generateMiddleware({ name: 'toolgate' }, () => ({
    tools, // Genkit reads them at each turn.
    async generate(turn, context, next) {
      signal = context.abortSignal
      offered.clear()
      for (const tool of (await run.next()).tools) offered.set(tool.name, tool)
      const restarted = turn.request.resume?.restart?.map(({ toolRequest }) => toolRequest.name) ?? []
      const names = new Set([UNKNOWN, ...restarted, ...offered.keys()])
      tools.splice(0, Infinity, ...Array.from(names, (name) => toGenkit(name, offered.get(name))))
      return next(turn, context)
    },
    async model(request, context, next) {
      const sent = request.tools?.filter(({ name }) => offered.has(name))
      const response = await next({ ...request, tools: sent }, context)
      for (const { toolRequest: call } of response.message?.content ?? [])
        if (call && !offered.has(call.name)) Object.assign(call, { name: UNKNOWN, input: { ...call } })
      return response
    },
    async tool({ toolRequest: { name, ref, input }, metadata }) {
      const call = name === UNKNOWN ? (input as { name: string; input: unknown }) : { name, input }
      const { text, approval } = await run.call({ name: call.name, input: call.input, callId: ref, signal })
      if (approval && !metadata?.['resumed']) throw new ToolInterruptError({ approval: approval.id })
      return { toolResponse: { name, ref, output: text } }
    },
  }))()
}

/** Without a body, as the middleware answers its calls. */
function toGenkit(name: string, { description = '', inputSchema = {} }: Partial<RunTool> = {}): ToolAction {
  return dynamicTool({ name, description, inputJsonSchema: inputSchema })
}
