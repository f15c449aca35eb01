// A group chat, and what the gate does with its calls: web search is disabled there, one user reaches a limit,
// another's payment waits for a person, a hook checks amounts, and an operator halts a tool. Each call leaves a record.
import { type Caller, createGate, type Hooks, memoryAudit } from '@toolgate/core'

const amounts: Hooks = {
  name: 'amounts',
  // It may replace the input; the new one is validated and decided again.
  beforeToolCall({ tool, input }) {
    if (tool.id !== 'bank:pay') return undefined
    const { amount } = input as { amount: number }
    if (amount > 1000) return { allow: false, reason: 'more than 1,000 is paid at the desk' }
    return amount === Math.round(amount) ? undefined : { input: { ...(input as object), amount: Math.round(amount) } }
  },
}

let nowMs = Date.parse('2026-11-22T09:00:00Z')
const audit = memoryAudit()
const gate = createGate({
  tools: {
    'web:search': { execute: ({ query }) => `10 results for ${query}` },
    'tracker:find': { execute: ({ text }) => `2 tickets about ${text}` },
    'bank:pay': {
      tags: ['payments'],
      inputSchema: {
        type: 'object',
        properties: { amount: { type: 'number', exclusiveMinimum: 0 } },
        required: ['amount'],
      },
      execute: ({ to, amount }) => `paid ${amount} to ${to}`,
    },
  },
  policy: [
    {
      name: 'group chats',
      deny: [
        { match: 'web:*', when: "caller.chat.type == 'group'", message: 'Web search is disabled in group chats.' },
      ],
    },
    { name: 'money', ask: ['tag:payments'] },
  ],
  limits: 'tracker:find:2/60',
  hooks: amounts,
  audit,
  // A clock of its own, so the output is always the same. Default: the system's.
  clock: { monotonicMs: () => nowMs, wallMs: () => (nowMs += 250) },
})

const chat = { id: 'team', type: 'group' }
const vera: Caller = { user: 'vera', tenant: 'acme', chat }
const omar: Caller = { user: 'omar', tenant: 'acme', chat }
let calls = 0
const say = async (caller: Caller, tool: 'web:search' | 'tracker:find' | 'bank:pay', input: object): Promise<void> => {
  const view = await gate.view(caller)
  const { status, text } = await view.call({ tool, input, callId: `call-${++calls}` })
  console.log(`  ${caller.user} ${tool} ${JSON.stringify(input)}\n    ${status}: ${text}`)
}

console.log('In the group chat')
await say(vera, 'web:search', { query: 'hinges' })
for (const text of ['hinges', 'locks', 'keys']) await say(vera, 'tracker:find', { text })
await say(omar, 'bank:pay', { to: 'hinge works', amount: 'much' })
await say(omar, 'bank:pay', { to: 'hinge works', amount: 5000 })
await say(omar, 'bank:pay', { to: 'hinge works', amount: 79.9 })

console.log('\nA person with the role approver looks at the input, and it runs once')
for (const { id, user, tool, input } of await gate.approvals.list({ status: 'pending' })) {
  console.log(`  (${user} asks for ${tool} ${JSON.stringify(input)}: approved)`)
  await gate.approvals.decide({ user: 'olga', tenant: 'acme', roles: ['approver'] }, id, { decision: 'approve' })
}
await say(omar, 'bank:pay', { to: 'hinge works', amount: 79.9 })
await say(omar, 'bank:pay', { to: 'hinge works', amount: 79.9 })

console.log('\nA halt')
await gate.halt({ tool: 'bank:*', reason: 'the bank reports an outage', by: 'olga' })
await say(omar, 'bank:pay', { to: 'hinge works', amount: 80 })

console.log('\nThe audit: one record ends each attempt')
for (const { seq, event, user_id = '', tool = '', tool_call_id = '', reason = '', limit = '' } of audit.records) {
  const words = [String(seq).padStart(3), tool_call_id.padEnd(8), event.padEnd(23), user_id.padEnd(5), tool.padEnd(13)]
  console.log(`${words.join(' ')} ${reason} ${limit}`.trimEnd())
}
