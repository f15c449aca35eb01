import { createGate, type Gate } from '@toolgate/core'
import { createAgent, fakeModel, tool } from 'langchain'
import { z } from 'zod'
import { fromLangChain, guard, guardTools } from '../langchain.ts'

const search = tool(({ q }) => `found ${q}`, { name: 'search', schema: z.object({ q: z.string() }) })
const remove = tool(() => 'gone', { name: 'remove', schema: z.object({}) })
const tools = [search, remove]

const gate = createGate({
  tools: fromLangChain([search, remove], { remove: { tags: ['danger'] } }),
  policy: { deny: [{ match: 'remove', unless: "'admin' in caller.roles" }] },
})
export const named: Gate<'search' | 'remove'> = gate
export const native: typeof search | undefined = gate['~native']?.search

// The guide’s line compiles unchanged.
export const agent = createAgent({
  model: fakeModel(),
  tools,
  contextSchema: z.object({ caller: z.custom<{ user: string }>() }),
  middleware: [guard(gate, { caller: (runtime) => runtime.context.caller })],
})
void agent.invoke({ messages: [] }, { context: { caller: { user: 'vera' } } })

guard(gate, { caller: { user: 'vera' }, activeTools: ['search'] })
// @ts-expect-error -- no tool has this name
guard(gate, { caller: { user: 'vera' }, activeTools: ['serach'] })
// @ts-expect-error -- a run has a caller
guard(gate, {})
// @ts-expect-error -- an unknown mode
guard(gate, { caller: { user: 'vera' }, approvals: 'ignore' })
// @ts-expect-error -- no tool has this name
fromLangChain([search], { remove: {} })
// @ts-expect-error -- no tool has this name
createGate({ tools: fromLangChain([search]), policy: { deny: ['remove'] } })

void guardTools(gate, { caller: { user: 'vera' } }).visible()
