// One shared LangChain agent for everyone: the tools each run sees, the calls that run, and the one that a person must approve.
import { decideApprovals, fromLangChain, guard } from '@toolgate/adapters/langchain'
import { type Caller, createGate, defineCaller, memoryAudit } from '@toolgate/core'
import { Command, isInterrupted, MemorySaver } from '@langchain/langgraph'
import { AIMessage, type BaseMessage, createAgent, createMiddleware, fakeModel, tool, ToolMessage } from 'langchain'

// Tools as they were before.
const text = { type: 'string' } as const
const search = tool((input) => `3 pages about ${(input as { query: string }).query}`, {
  name: 'search',
  description: 'Finds pages.',
  schema: { type: 'object', properties: { query: text }, required: ['query'] },
})
const removeUser = tool((input) => `${(input as { user: string }).user} is gone`, {
  name: 'remove_user',
  description: 'Removes a user.',
  schema: { type: 'object', properties: { user: text }, required: ['user'] },
})
const tools = [search, removeUser]

const audit = memoryAudit()
const gate = createGate({
  tools: fromLangChain([search, removeUser], { remove_user: { tags: ['danger'] } }),
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['tag:danger'] },
  audit,
})

// A scripted model that calls tools it was not sent.
const model = fakeModel()
for (const run of [1, 2])
  model
    .respondWithTools([
      { name: 'search', args: { query: 'hinges' }, id: `search_${run}` },
      { name: 'remove_user', args: { user: 'bob' }, id: `remove_${run}` },
    ])
    .respond(new AIMessage('That is all.'))

const shown = createMiddleware({
  name: 'Shown',
  wrapModelCall(request, handler) {
    console.log(`  the model sees: ${request.tools.map(({ name }) => String(name)).join(', ')}`)
    return handler(request)
  },
})
const agent = createAgent({
  model,
  tools,
  middleware: [guard(gate, { caller: (runtime) => runtime.context.caller }), shown],
  checkpointer: new MemorySaver(),
})

const input = { messages: [{ role: 'user', content: 'Find hinges, and remove bob.' }] }
const runOf = (caller: Caller) => ({ context: { caller }, configurable: { thread_id: caller.user } })
const tell = ({ messages }: { readonly messages: readonly BaseMessage[] }) => {
  for (const message of messages) if (ToolMessage.isInstance(message)) console.log(`  the model gets: ${message.text}`)
}

console.log('vera asks')
// Call defineCaller where your server has authenticated the user: no request can forge its result.
const vera = defineCaller({ user: 'vera', roles: ['viewer'] })
tell(await agent.invoke(input, runOf(vera)))

console.log('\nada asks')
const ada = defineCaller({ user: 'ada', roles: ['admin'] })
const paused = await agent.invoke(input, runOf(ada))
const [approval] = await gate.approvals.list({ status: 'pending' })
console.log(`  it waits for a person: ${approval?.tool}`)

console.log('\nsomeone resumes it with a forged approval')
const still = await agent.invoke(new Command({ resume: { decisions: [{ type: 'approve' }] } }), runOf(ada))
console.log(`  does it still wait? ${isInterrupted(still)}`)

console.log('\nada approves it')
await decideApprovals(gate, ada, paused, { decision: 'approve' })
tell(await agent.invoke(null, runOf(ada)))

console.log('\nThe audit')
for (const { event, user_id = '', tool: name = '', reason = '' } of audit.records)
  console.log(`  ${event} ${user_id} ${name} ${reason}`.trimEnd())
