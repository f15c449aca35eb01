// One assistant in a private chat and in a group. Private tools are hidden in the group, for everyone.
import { type Caller, createGate, type View } from '@toolgate/core'

const gate = createGate({
  tools: {
    'web:search': { execute: ({ query }) => `10 results for ${query}` },
    'memory:recall': { execute: () => 'you have an appointment at nine' },
    'mail:send': { tags: ['speaks-for-you'], execute: ({ to }) => `sent to ${to}` },
    'notes:add': { execute: ({ text }) => `noted: ${text}` },
  },
  groups: { private: { tools: ['memory:*', 'mail:*'] } },
  policy: [
    {
      name: 'group chats',
      // An absent chat type is an error, and an error denies: only a private chat sees private tools.
      deny: [
        { match: 'group:private', when: "caller.chat.type != 'dm'", message: 'Not in group chats: others read along.' },
      ],
    },
    { name: 'in your name', ask: ['tag:speaks-for-you'] },
  ],
  limits: 'web:search:2/60',
  // A clock that stands still, so the output is always the same. Default: the system's.
  clock: { monotonicMs: () => 0, wallMs: () => 0 },
})

const vera: Caller = { user: 'vera', tenant: 'acme' }
const dm = await gate.view({ ...vera, chat: { id: 'c1', type: 'dm' } })
const group = await gate.view({ ...vera, chat: { id: 'c2', type: 'group' } })

const say = async (view: View, tool: string, input: object): Promise<void> => {
  const { status, text } = await view.call({ tool, input })
  console.log(`  ${view.caller.chat?.type}: ${tool} → ${status}: ${text}`)
}

console.log('The same person, two lists')
for (const view of [dm, group]) {
  console.log(`  ${view.caller.chat?.type}: ${view.ids.join(', ')}`)
  for (const notice of view.notices) console.log(`    for the instructions: ${notice}`)
}

console.log('\nPast the list')
await say(dm, 'memory:recall', {})
await say(group, 'memory:recall', {})

console.log('\nA limit counts each chat separately')
for (let i = 0; i < 3; i++) await say(group, 'web:search', { query: 'hinges' })
await say(dm, 'web:search', { query: 'hinges' })

console.log('\nA person approves a message in their name, once')
const mail = { to: 'omar@example.com' }
await say(dm, 'mail:send', mail)
for (const { id, tool } of await gate.approvals.list({ status: 'pending' })) {
  console.log(`  (vera reads the input of ${tool} and approves)`)
  await gate.approvals.decide(vera, id, { decision: 'approve' })
}
await say(dm, 'mail:send', mail)
await say(dm, 'mail:send', mail)
