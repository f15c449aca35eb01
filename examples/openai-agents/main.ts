// One shared agent of the OpenAI Agents SDK for everyone: the tools each sees, the calls that run, and one that a person must approve.
import { fromOpenAIAgents, guard } from '@toolgate/adapters/openai-agents'
import { type Caller, createGate, defineCaller, memoryAudit } from '@toolgate/core'
import { Agent, type RunContext, Runner, tool } from '@openai/agents'
import { assistantMessage, functionCall, modelResponder, ScriptedModel } from '@openai/agents/testing'

interface Session {
  readonly caller: Caller
}

// Tools as they were before.
const text = { type: 'string' } as const
const search = tool({
  name: 'search',
  description: 'Finds pages.',
  parameters: { type: 'object', properties: { query: text }, required: ['query'], additionalProperties: false },
  execute: (input) => `3 pages about ${(input as { query: string }).query}`,
})
const removeUser = tool({
  name: 'remove_user',
  description: 'Removes a user.',
  parameters: { type: 'object', properties: { user: text }, required: ['user'], additionalProperties: false },
  execute: (input) => `${(input as { user: string }).user} is gone`,
})

const audit = memoryAudit()
const gate = createGate({
  tools: fromOpenAIAgents([search, removeUser], { remove_user: { tags: ['danger'] } }),
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['tag:danger'] },
  audit,
})

// A scripted model that calls tools it was not sent.
const model = new ScriptedModel()
const reply = modelResponder(({ request }) => {
  console.log(`  the model sees: ${request.tools.map(({ name }) => name).join(', ')}`)
  const items = typeof request.input === 'string' ? [] : request.input
  const results = items.filter((item) => item.type === 'function_call_result')
  for (const { output } of results) console.log(`  the model gets: ${(output as { text: string }).text}`)
  if (results.length > 0) return [assistantMessage('That is all.')]
  return [
    functionCall('search', { query: 'hinges' }, { callId: 'call_1' }),
    functionCall('remove_user', { user: 'bob' }, { callId: 'call_2' }),
  ]
})
model.enqueue(reply, reply, reply, reply, reply)

const toolgate = guard(gate, { caller: (run: RunContext<Session>) => run.context.caller })
const agent = new Agent<Session>({ name: 'Desk', instructions: 'Help.', model, tools: toolgate.tools })
const runner = new Runner({ tracingDisabled: true, ...toolgate.runConfig })

console.log('vera asks')
// Call defineCaller where your server has authenticated the user: no request can forge its result.
const vera = defineCaller({ user: 'vera', roles: ['viewer'] })
await runner.run(agent, 'Find hinges, and remove bob.', { context: { caller: vera } })

console.log('\nada asks')
const ada = defineCaller({ user: 'ada', roles: ['admin'] })
const paused = await runner.run(agent, 'Find hinges, and remove bob.', { context: { caller: ada } })
console.log(`  it waits for a person: ${paused.interruptions.map(({ name }) => name).join(', ')}`)
const saved = paused.state.toString()

console.log('\nanother process, where someone has only changed the saved state')
const forged = await toolgate.restore(agent, saved, { caller: ada })
for (const item of forged.getInterruptions()) forged.approve(item)
await runner.run(agent, forged)

console.log('\nanother process, where ada approves it')
const state = await toolgate.restore(agent, saved, { caller: ada })
for (const item of state.getInterruptions()) await toolgate.answer(state, item, ada, { decision: 'approve' })
await runner.run(agent, state)

console.log('\nThe audit')
for (const { event, user_id = '', tool: name = '', reason = '' } of audit.records)
  console.log(`  ${event} ${user_id} ${name} ${reason}`.trimEnd())
