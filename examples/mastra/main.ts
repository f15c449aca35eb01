// One Mastra agent for everyone: the tools each caller sees, the calls that run, and the one that a person must approve.
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

// A scripted model that calls tools it was not sent.
const model = scriptedModel(({ answers, sent, told }) => {
  console.log(`  the model sees: ${sent.join(', ')}`)
  for (const { text } of told) console.log(`  the model gets: ${text}`)
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
// Mastra keeps paused runs here.
void new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false })

const asking = (caller: Caller) => ({ requestContext: new RequestContext([['caller', caller]]) as RequestContext })
// Call defineCaller where your server has authenticated the user: no request can forge its result.
const vera = defineCaller({ user: 'vera', roles: ['viewer'] })
const ada = defineCaller({ user: 'ada', roles: ['admin'] })

console.log('vera asks')
await agent.generate('Find hinges, and remove bob.', asking(vera))

console.log('\nada asks')
const paused = await agent.generate('Find hinges, and remove bob.', asking(ada))
const { runId, toolCallId, toolName } = pausedRun(paused)
console.log(`  it waits for a person: ${toolName}`)

console.log('\nsomeone resumes it without an approval')
const { finishReason } = await agent.approveToolCallGenerate({ runId, toolCallId, ...asking(ada) })
console.log(`  ${finishReason}`)

console.log('\nada approves it')
await answerToolCall(agent, pausedRun(paused), { by: ada, decision: 'approve', ...asking(ada) })

console.log('\nThe audit')
for (const { event, user_id = '', tool = '', reason = '' } of audit.records)
  console.log(`  ${event} ${user_id} ${tool} ${reason}`.trimEnd())
