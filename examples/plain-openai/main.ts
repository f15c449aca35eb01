// Your own loop over the plain OpenAI SDK, guarded: the tools that are sent, the calls that run, the results.
import { guard } from '@toolgate/adapters/openai'
import { createGate, memoryAudit } from '@toolgate/core'
import OpenAI from 'openai'

const audit = memoryAudit()
const gate = createGate({
  tools: {
    search: { tags: ['read'], execute: ({ query }) => `3 pages about ${query}` },
    pay: { tags: ['payments'], execute: ({ cents }) => `paid ${cents} cents` },
    'files:remove': { tags: ['danger'], execute: () => 'gone' },
  },
  policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }], ask: ['tag:payments'] },
  audit,
})

// A scripted model that calls tools it was not sent. Without `fetch` it is the real one.
const script = [
  [call('search', { query: 'hinges' }), call('files__remove', { path: '/' })],
  [call('pay', { cents: 500 })],
  [],
]
const client = new OpenAI({
  apiKey: 'none',
  fetch: async (_, init) => {
    const { tools } = JSON.parse(init?.body as string) as { tools?: { name: string }[] }
    console.log(`  sent to the model: ${tools?.map(({ name }) => name).join(', ')}`)
    return Response.json({ id: 'r', object: 'response', output: script.shift() ?? [] })
  },
})

async function answer(user: string, roles: string[], question: string): Promise<void> {
  console.log(`${user} asks: ${question}`)
  const run = await guard(gate, { user, roles }, { model: 'gpt-5.4' })
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: question }]
  for (;;) {
    const { output } = await client.responses.create({ model: 'gpt-5.4', input, ...(await run.next()) })
    const calls = output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) break
    // A reasoning model needs its reasoning back with its calls.
    input.push(...output.filter((item) => item.type === 'reasoning' || item.type === 'function_call'))
    for (const one of calls) {
      const result = await run.execute(one)
      console.log(`  ${one.name} → ${result.output}`)
      input.push(result)
    }
  }
}

await answer('vera', ['viewer'], 'Why do gates have hinges? And pay for the page.')

// The person approves, the model calls again, and the payment runs once.
for (const { id } of await gate.approvals.list({ status: 'pending' }))
  await gate.approvals.decide({ user: 'vera' }, id, { decision: 'approve' })
script.push([call('pay', { cents: 500 })], [call('pay', { cents: 500 })], [])
console.log()
await answer('vera', ['viewer'], 'I have approved it.')

console.log('\nThe audit')
for (const { event, tool = '', reason = '' } of audit.records) console.log(`  ${event} ${tool} ${reason}`.trimEnd())

function call(name: string, input: object): object {
  return { type: 'function_call', name, arguments: JSON.stringify(input), call_id: `call_${name}` }
}
