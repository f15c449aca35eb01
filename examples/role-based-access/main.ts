// One agent for a whole support desk: three roles with three lists, all at once.
import { callerSchema, fromAiSdk, guard } from '@toolgate/adapters/ai-sdk'
import { createGate, defineCaller, memoryAudit } from '@toolgate/core'
import { ToolLoopAgent, tool } from 'ai'
import { z } from 'zod'
import { type Answer, scriptedModel } from '../support/scripted-model.ts'

const ran = new Map<string, number>()
const did = async (what: string): Promise<string> => {
  ran.set(what, (ran.get(what) ?? 0) + 1)
  return `${what}: done`
}

const ticket = z.object({ ticket: z.string() })
const tools = {
  search: tool({ inputSchema: z.object({ text: z.string() }), execute: () => did('search') }),
  reply: tool({ inputSchema: ticket, execute: () => did('reply') }),
  remove: tool({ inputSchema: ticket, execute: () => did('remove') }),
  refund: tool({ inputSchema: z.object({ cents: z.int().positive() }), execute: () => did('refund') }),
}
const audit = memoryAudit()
const gate = createGate({
  tools: fromAiSdk(tools, {
    reply: { tags: ['write'] },
    remove: { tags: ['write'] },
    refund: { tags: ['write', 'payments'], requiredScopes: ['billing'] },
  }),
  policy: [
    { name: 'roles', deny: [{ match: 'tag:write', unless: "'agent' in caller.roles || 'admin' in caller.roles" }] },
    { name: 'tickets', deny: [{ match: 'remove', unless: "'admin' in caller.roles", message: 'Only admins remove.' }] },
    { name: 'money', deny: [{ match: 'tag:payments', input: 'input.cents > 10000', message: 'At most 100.00.' }] },
  ],
  audit,
})

// The model calls every tool for every caller. All requests share one agent.
const wants: readonly Answer[] = [
  [
    ['search', { text: 'invoices' }],
    ['remove', { ticket: 'T-7' }],
  ],
  [
    ['refund', { cents: 500 }],
    ['refund', { cents: 50_000 }],
  ],
  'Done.',
]
const lists = new Map<string, number>()
const model = scriptedModel(({ answers, sent }) => {
  lists.set(sent.join(', '), (lists.get(sent.join(', ')) ?? 0) + 1)
  return wants[answers] ?? ''
})
const agent = new ToolLoopAgent({
  model,
  tools,
  callOptionsSchema: callerSchema,
  prepareCall: async ({ options: caller, ...settings }) => ({ ...settings, ...(await guard(gate, caller)) }),
})

// Call defineCaller where your server has authenticated the users: no request can forge its result.
const desk = [
  { user: 'vera', roles: ['viewer'] },
  { user: 'omar', roles: ['agent'], scopes: ['billing'] },
  { user: 'ada', roles: ['admin'] },
].map(defineCaller)
for (const caller of desk) console.log(`${caller.user} sees ${(await gate.view(caller)).ids.join(', ')}`)

const RUNS = 300
const eachRuns = Array.from({ length: RUNS / desk.length }, () => desk).flat()
await Promise.all(eachRuns.map((caller) => agent.generate({ prompt: 'Go on.', options: caller })))

console.log(`\n${RUNS} runs at once. What the model was sent, and how often:`)
tell(lists)
console.log('What ran:')
tell(ran)

console.log('Why not, for people and never for the model:')
for (const caller of desk) {
  const [reason] = (await gate.view(caller)).explain('remove').reasons
  console.log(`  ${caller.user}, remove: ${reason?.text ?? 'allowed'}`)
}
const refused = audit.records.filter(({ event }) => event === 'tool_blocked')
console.log(`Refusals on record: ${refused.length}, of ${new Set(refused.map(({ user_id }) => user_id)).size} people`)

function tell(counts: ReadonlyMap<string, number>): void {
  for (const [what, count] of [...counts].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${count} × ${what}`)
}
