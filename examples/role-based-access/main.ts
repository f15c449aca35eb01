// One gate for a whole support desk. Three people, three lists, one policy.
import { type Caller, createGate } from '@toolgate/core'

const gate = createGate({
  tools: {
    'tickets:search': { tags: ['read'], execute: ({ text }) => `2 tickets about ${text}` },
    'tickets:reply': { tags: ['write'], execute: ({ ticket }) => `replied to ${ticket}` },
    'tickets:delete': {
      tags: ['write'],
      annotations: { destructiveHint: true },
      execute: ({ ticket }) => `${ticket} is gone`,
    },
    'billing:refund': {
      tags: ['write', 'payments'],
      requiredScopes: ['billing'],
      inputSchema: { type: 'object', properties: { cents: { type: 'integer', minimum: 1 } }, required: ['cents'] },
      execute: ({ cents }) => `refunded ${cents} cents`,
    },
  },
  policy: [
    {
      name: 'roles',
      deny: [
        { match: 'tag:write', unless: "'agent' in caller.roles || 'admin' in caller.roles" },
        { match: 'tickets:delete', unless: "'admin' in caller.roles", message: 'Only admins delete tickets.' },
      ],
    },
    {
      name: 'money',
      ask: ['tag:payments'],
      deny: [{ match: 'tag:payments', input: 'input.cents > 10000', message: 'At most 100.00.' }],
    },
  ],
})

const people: readonly Caller[] = [
  { user: 'vera', roles: ['viewer'] },
  { user: 'omar', roles: ['agent'], scopes: ['billing'] },
  { user: 'ada', roles: ['admin'] },
]

console.log('What each of them sees')
for (const person of people) {
  const view = await gate.view(person)
  console.log(`  ${person.user} (${person.roles?.join()}): ${view.ids.join(', ')}`)
}

console.log('\nWhat comes of calling, seen or not')
const calls = [
  { tool: 'tickets:search', input: { text: 'invoices' } },
  { tool: 'tickets:delete', input: { ticket: 'T-7' } },
  { tool: 'billing:refund', input: { cents: 500 } },
  { tool: 'billing:refund', input: { cents: 50_000 } },
] as const
for (const person of people) {
  const view = await gate.view(person)
  for (const call of calls) {
    const outcome = await view.call(call)
    console.log(`  ${person.user} → ${call.tool} ${JSON.stringify(call.input)}\n    ${outcome.status}: ${outcome.text}`)
  }
}

// The model is told as little as possible; a person who may ask gets every reason, the deciding one first.
console.log('\nWhy not? For people, never for the model')
for (const person of people) {
  const view = await gate.view(person)
  for (const id of gate.catalog.snapshot().ids) {
    const { reasons } = view.explain(id)
    for (const { outcome, layer, text } of reasons)
      console.log(`  ${person.user}, ${id}: ${outcome}, by ${layer}: ${text}`)
  }
}
