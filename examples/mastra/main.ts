// One agent of Mastra for everybody: what each is shown, what runs, and who has to say yes.
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import type { MastraModelConfig } from '@mastra/core/llm'
import { RequestContext } from '@mastra/core/request-context'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { answerToolCall, fromMastra, guard, pausedRun } from '@toolgate/adapters/mastra'
import { type Caller, createGate, defineCaller, memoryAudit } from '@toolgate/core'
import { z } from 'zod'
import { scriptedModel } from '../support/scripted-model.ts'

// Tools as they were before.
const search = createTool({
  id: 'search',
  description: 'Finds pages.',
  inputSchema: z.object({ query: z.string() }),
  execute: ({ query }) => Promise.resolve(`3 pages about ${query}`),
})
const remove_user = createTool({
  id: 'remove_user',
  description: 'Removes a user.',
  inputSchema: z.object({ user: z.string() }),
  execute: ({ user }) => {
    console.log(`  ${user} is really gone`)
    return Promise.resolve(`${user} is gone`)
  },
})

const audit = memoryAudit()
const gate = createGate({
  tools: fromMastra({ search, remove_user }, { remove_user: { tags: ['danger'] } }),
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['tag:danger'] },
  audit,
})

// A model that does not keep to its list, in place of the network.
const model = scriptedModel(({ answers, sent, told }) => {
  console.log(`  the model is shown: ${sent.join(', ')}`)
  for (const { text } of told) console.log(`  it is told: ${text}`)
  if (answers > 0) return 'That is all.'
  return [
    ['search', { query: 'hinges' }],
    ['remove_user', { user: 'bob' }],
  ]
})

const agent = new Agent({
  id: 'desk',
  name: 'Desk',
  instructions: 'Help.',
  model: model as unknown as MastraModelConfig,
  ...guard(gate, { caller: ({ requestContext }) => requestContext.get('caller') }),
})
// Where Mastra keeps the runs that wait.
void new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false })

const asking = (caller: Caller) => ({ requestContext: new RequestContext([['caller', caller]]) as RequestContext })
// Where a server has authenticated the user: no request can carry what defineCaller returns.
const vera = defineCaller({ user: 'vera', roles: ['viewer'] })
const ada = defineCaller({ user: 'ada', roles: ['admin'] })

console.log('vera asks')
await agent.generate('Find hinges, and remove bob.', asking(vera))

console.log('\nada asks')
const paused = await agent.generate('Find hinges, and remove bob.', asking(ada))
const { runId, toolCallId, toolName } = pausedRun(paused)
console.log(`  it waits for a person: ${toolName}`)

console.log('\nsomebody resumes it, and nobody has said yes')
const { finishReason } = await agent.approveToolCallGenerate({ runId, toolCallId, ...asking(ada) })
console.log(`  ${finishReason}`)

console.log('\nada herself says yes')
await answerToolCall(agent, pausedRun(paused), { by: ada, decision: 'approve', ...asking(ada) })

console.log('\nThe audit')
for (const { event, user_id = '', tool = '', reason = '' } of audit.records)
  console.log(`  ${event} ${user_id} ${tool} ${reason}`.trimEnd())
