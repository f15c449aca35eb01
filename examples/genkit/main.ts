// Genkit behind a gate, by an adapter of thirty lines: what each run is offered, what runs, and what waits for a person.
import { createGate, memoryAudit } from '@toolgate/core'
import { genkit, type Part, restartTool } from 'genkit'
import { guard } from './adapter.ts'

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

// A scripted model that calls tools it was not offered.
const script: Part[][] = [
  [call('search', { query: 'hinges' }), call('files__remove', { path: '/' })],
  [call('pay', { cents: 500 })],
  [{ text: 'That is all.' }],
]
const ai = genkit({})
const model = ai.defineModel({ name: 'scripted', supports: { tools: true } }, async ({ messages, tools }) => {
  for (const { toolResponse } of messages.at(-1)?.content ?? [])
    if (toolResponse) console.log(`  told: ${String(toolResponse.output)}`)
  console.log(`  offered: ${tools?.map(({ name }) => name).join(', ')}`)
  return { message: { role: 'model', content: script.shift() ?? [] }, finishReason: 'stop' }
})

const vera = { user: 'vera', roles: ['viewer'] }
const run = { runId: 'chat-7', model: 'scripted' }

console.log('Vera asks')
const prompt = 'Why do gates have hinges? And pay for the page.'
const paused = await ai.generate({ model, prompt, use: [await guard(gate, vera, run)] })
console.log(`  ${paused.finishReason}: ${paused.interrupts.map(({ toolRequest }) => toolRequest.name).join(', ')}`)

console.log('\nVera approves')
for (const { id } of await gate.approvals.list({ status: 'pending' }))
  await gate.approvals.decide(vera, id, { decision: 'approve' })
const restart = paused.interrupts.map((interrupt) => restartTool(interrupt))
// Any process can resume: the messages are plain JSON, and the run is found by its id.
const { text } = await ai.generate({
  model,
  messages: paused.messages,
  resume: { restart },
  use: [await guard(gate, vera, run)],
})
console.log(`  ${text}`)

console.log('\nThe audit')
for (const { event, tool = '', reason = '' } of audit.records) console.log(`  ${event} ${tool} ${reason}`.trimEnd())

function call(name: string, input: object): Part {
  return { toolRequest: { name, ref: `call_${name}`, input } }
}
