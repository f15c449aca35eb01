// A bookkeeper that asks before it pays: a sub-agent looks things up, the run pauses for a person, and is resumed later.
import {
  askForInput,
  createPlanner,
  type PlannerEvent,
  type RunPaused,
  type RunResult,
  subAgent,
} from '@toolgate/planner'
import { type Caller, createGate, memoryAudit } from '@toolgate/core'
import { type Answer, scriptedModel } from '../support/scripted-model.ts'

const invoice = { to: 'Bolt Ltd', cents: 12_500 }
const audit = memoryAudit()
const gate = createGate({
  tools: {
    find_invoice: { tags: ['read'], execute: ({ number }) => ({ number, ...invoice }) },
    pay: { execute: ({ to, cents }) => `paid ${(cents / 100).toFixed(2)} to ${to}` },
    ask_user: {
      execute: ({ question }) => askForInput({ question, schema: { type: 'string', enum: ['now', 'friday'] } }),
    },
    close_account: {},
    // It sees the tools of the run that calls it, and of those only the ones with this tag.
    clerk: subAgent({ name: 'clerk', instructions: 'You look things up.', policy: { requireTags: ['read'] } }),
  },
  policy: [{ ask: ['pay'] }, { deny: ['close_account'] }],
  audit,
})

// A scripted model, which also tries calls that the gate refuses.
const bookkeeper: readonly Answer[] = [
  [['clerk', { prompt: 'Find invoice 7.' }]],
  [
    ['ask_user', { question: 'When shall I pay it?' }],
    ['close_account', {}],
  ],
  [['pay', invoice]],
  'Invoice 7 is paid.',
]
const clerk: readonly Answer[] = [[['pay', invoice]], [['find_invoice', { number: 7 }]], 'Bolt Ltd, 125.00.']
const model = scriptedModel(({ answers, sent }) => (sent.includes('clerk') ? bookkeeper : clerk)[answers] ?? '')

const planner = createPlanner({
  model,
  gate,
  instructions: 'You keep the books.',
  budgets: { steps: 10, calls: 6 },
  onEvent: print,
  // A clock that stands still, so the output is always the same. Default: the system's.
  clock: { monotonicMs: () => 0, wallMs: () => 0 },
})

const vera: Caller = { user: 'vera', tenant: 'acme', session: 'books' }
const asked = paused(await planner.run({ prompt: 'Pay invoice 7.', caller: vera }))
// A later request of the same session: the person's answer becomes the result of the call.
const waiting = paused(await planner.resume(asked.resumeToken, { caller: vera, input: 'now' }))

// A token works once, and for the same caller. The refusal does not say what was wrong.
const fail = (error: Error) => console.log(String(error))
await planner.resume(asked.resumeToken, { caller: vera, input: 'now' }).catch(fail)
await planner.resume(waiting.resumeToken, { caller: { ...vera, user: 'eve' }, approve: true }).catch(fail)

// Approved by a person who may. The call is decided again: a tool that is hidden by now would not run.
const ada: Caller = { user: 'ada', tenant: 'acme', roles: ['approver'] }
const done = await planner.resume(waiting.resumeToken, { caller: vera, approve: true, by: ada })
console.log(`${done.status}: ${done.text} ${JSON.stringify(done.used)}`)

console.log('\nThe audit: one record ends each attempt')
for (const { tool, event, reason = '' } of audit.records)
  if (event !== 'tool_call' && tool) console.log(`  ${tool.padEnd(13)} ${event} ${reason}`.trimEnd())

function print(event: PlannerEvent): void {
  const inside = event.agents.map(({ tool }) => `${tool}: `).join('')
  if (event.type === 'step-started') console.log(`  ${inside}step ${event.step} sees ${event.tools.join(', ')}`)
  if (event.type === 'call-decided')
    console.log(`  ${inside}${event.tool} ${event.status} ${event.code ?? ''}`.trimEnd())
}

function paused(result: RunResult): RunPaused {
  if (result.status !== 'paused') throw new Error(result.status)
  console.log(`paused: ${JSON.stringify(result.used)}`)
  for (const call of result.pending)
    console.log(`  ${call.tool} waits: ${call.kind === 'input' ? call.question : JSON.stringify(call.input)}`)
  return result
}
