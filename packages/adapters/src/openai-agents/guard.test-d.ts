import { Agent, type FunctionTool, handoff, MCPServerStdio, type RunContext, Runner, run, tool } from '@openai/agents'
import { type Caller, createGate, type Gate } from '@toolgate/core'
import { fromOpenAIAgents, guard } from '../openai-agents.ts'

interface Session {
  readonly caller: Caller
  readonly locale: string
}

declare const search: FunctionTool<Session>
declare const anybodys: FunctionTool
const remove = tool({
  name: 'remove',
  description: 'Removes.',
  parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
  execute: () => 1,
})
const helper = new Agent<Session>({ name: 'Helper' })

// A record's ids are known: in the overlay, in the policy, in the gate's names.
const named = createGate({
  tools: fromOpenAIAgents({ search, remove }, { remove: { tags: ['danger'], groups: ['web'] } }),
  policy: { deny: ['remove'] },
})
export const gate: Gate<'search' | 'remove'> = named
// @ts-expect-error -- no tool of that name
fromOpenAIAgents({ search }, { serach: { tags: [] } })
// @ts-expect-error -- no field of that name
fromOpenAIAgents({ search }, { search: { tag: [] } })
// @ts-expect-error -- no tool of that name
guard(named, { caller: {}, activeTools: ['serach'] })
guard(named, { caller: {}, activeTools: ['search'] })

// A list's names are texts.
const listed = createGate({ tools: fromOpenAIAgents([search, anybodys, remove, helper.asTool({}), handoff(helper)]) })
export const anyNames: Gate = listed
guard(listed, { caller: {}, activeTools: ['anything'] })

// The context that `caller` reads is that of the agent and of what is restored.
const { tools, handoffs, runConfig, toolFilter, restore, answer, settle } = guard(named, {
  caller: (context: RunContext<Session>) => context.context.caller,
  runId: ({ context }) => context.locale,
})
const agent = new Agent<Session>({ name: 'A', tools, handoffs })
export const state = await restore(agent, '', { caller: {}, locale: 'en' })
// @ts-expect-error -- the host has to say whose run it is
await restore(agent, '')
// @ts-expect-error -- a context of another shape
await restore(agent, '', { caller: {} })
const [item] = state.getInterruptions()
if (item) await answer(state, item, { user: 'boss' }, { decision: 'approve' })
export const waiting = await settle(state)
// @ts-expect-error -- a verdict that is none
if (item) await answer(state, item, { user: 'boss' }, { decision: 'maybe' })

// The run's configuration goes where the SDK takes one.
export const runners = [new Runner(runConfig), new Runner({ workflowName: 'w', ...runConfig })]
await run(agent, 'hi', { context: { caller: {}, locale: 'en' }, ...runConfig })
await run(agent, state, { stream: true, ...runConfig })
helper.asTool({ runConfig })
export const server = new MCPServerStdio({ command: 'x', toolFilter })

// @ts-expect-error -- a gate is no run: somebody has to be the caller
guard(named, {})

// It can be spread into an agent.
export const spread = new Agent<Session>({ name: 'A', ...guard(named, { caller: {} }) })
