import { Agent } from '@mastra/core/agent'
import type { RequestContext } from '@mastra/core/request-context'
import { createTool } from '@mastra/core/tools'
import { type Caller, createGate, defineTool, type Gate } from '@toolgate/core'
import { z } from 'zod'
import { answerToolCall, answerToolCallStream, fromMastra, guard, pausedRun } from './mastra.ts'

const search = createTool({
  id: 'search',
  description: 'Searches.',
  inputSchema: z.object({ q: z.string() }),
  outputSchema: z.object({ hits: z.number() }),
  suspendSchema: z.object({ question: z.string() }),
  execute: async ({ q }) => ({ hits: q.length }),
})
const remove = createTool({ id: 'remove', description: 'Removes.', execute: async () => 'gone' })

const gate: Gate<'search' | 'remove'> = createGate({
  tools: fromMastra({ search, remove }, { remove: { tags: ['danger'] } }),
  policy: { deny: ['remove'] },
})
const caller = (): Caller => ({ user: 'vera' })

export const agent = new Agent({
  id: 'desk',
  name: 'desk',
  instructions: 'Help.',
  model: 'openai/gpt-5',
  ...guard(gate, { caller: ({ requestContext }) => requestContext.get('caller') as Caller }),
})

guard(gate, { caller, activeTools: ['search'], ungoverned: ['agent-*'] })
guard(gate, {
  caller: async () => caller(),
  view: async ({ requestContext }) => ({ app: String(requestContext.get('app')) }),
})
// @ts-expect-error a misspelt name
guard(gate, { caller, activeTools: ['serach'] })
// @ts-expect-error nobody asks
guard(gate, {})
// @ts-expect-error a misspelt name
fromMastra({ search }, { serach: { tags: ['x'] } })
// @ts-expect-error a misspelt field
fromMastra({ search }, { search: { tag: ['x'] } })
guard(createGate({ tools: [defineTool({ name: 'other' })] }), { caller })

export async function resumed(requestContext: RequestContext): Promise<string> {
  const paused = pausedRun(await agent.generate('go'))
  const stream = await answerToolCallStream(agent, paused, { by: caller(), decision: 'reject', requestContext })
  const result = await answerToolCall(agent, paused, { by: caller(), decision: 'approve', requestContext, maxSteps: 3 })
  return result.text + (await stream.text)
}
