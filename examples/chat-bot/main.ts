// A chat bot for private chats and groups. Its operator sets variables; its code does not change.
import { fromAiSdk, guard } from '@toolgate/adapters/ai-sdk'
import type { Caller, Reason } from '@toolgate/core'
import { combinePolicies, createGate, limitsFromEnv, policyFromEnv, sendersFromEnv } from '@toolgate/core'
import { generateText, isStepCount, tool } from 'ai'
import { z } from 'zod'
import { scriptedModel } from '../support/scripted-model.ts'

const env = {
  TOOL_ALLOWLIST: 'web_search,memory_recall,send_mail,tag:notes',
  TOOL_DENYLIST_GROUP: 'memory_recall,send_mail',
  TOOL_RATE_LIMITS: 'web_search:2/60',
  TOOL_ALLOWED_SENDERS_DM: 'tg:8',
  TOOL_OWNERS: 'tg:7',
}
const query = z.object({ query: z.string() })
const tools = {
  web_search: tool({ inputSchema: query, execute: async ({ query: text }) => `10 results for ${text}` }),
  memory_recall: tool({ inputSchema: query, execute: async () => 'an appointment at nine' }),
  send_mail: tool({ inputSchema: z.object({ to: z.email() }), execute: async ({ to }) => `sent to ${to}` }),
  note_add: tool({ inputSchema: z.object({ text: z.string() }), execute: async ({ text }) => `noted: ${text}` }),
  shell: tool({ inputSchema: z.object({}), execute: async () => 'should never run' }),
}
const gate = createGate({
  tools: fromAiSdk(tools, { note_add: { tags: ['notes'] } }),
  policy: combinePolicies(sendersFromEnv(env), policyFromEnv(env), { ask: ['send_mail'] }),
  limits: limitsFromEnv(env),
  clock: { monotonicMs: () => 0, wallMs: () => 0 }, // It stands still, so the output is always the same.
})

/** A message, in Telegram's format. */
interface Update {
  readonly from: { readonly id: number; readonly first_name: string }
  readonly chat: { readonly id: number; readonly type: 'private' | 'group' | 'supergroup' | 'channel' }
  readonly text: string
}

const callerOf = ({ from, chat }: Omit<Update, 'text'>): Caller => ({
  user: `tg:${from.id}`,
  chat: { id: String(chat.id), type: chat.type },
})

/** The bot's replies to the person. The model has already got the gate's text. */
const REPLIES: Partial<Record<Reason['code'], (reason: Reason) => string>> = {
  rate_limited: ({ resetMs = 0 }) => `That was a lot of searching. Try again in ${Math.ceil(resetMs / 1000)} seconds.`,
  policy_ask: () => 'Shall I? Answer /yes, and I will do it once.',
  policy_denied: () => 'Not in here. Write to me alone.',
  input_invalid: () => 'I did not get that right. Please say it once more.',
}

async function handle(update: Update, wants: readonly (readonly [string, object])[]): Promise<void> {
  const replies = new Set<string>()
  const guarded = await guard(gate, callerOf(update), {
    onCall({ tool: name, outcome }) {
      console.log(`    ${name} → ${outcome.status}: ${outcome.text}`)
      const reason = 'decision' in outcome ? outcome.decision.reasons[0] : undefined
      if (reason) replies.add(REPLIES[reason.code]?.(reason) ?? 'I cannot do that.')
    },
  })
  console.log(`${update.from.first_name}, ${update.chat.type}: ${update.text}`)
  const model = scriptedModel(({ answers, sent, told }) => {
    if (answers === 0) console.log(`    (the model is sent ${sent.join(', ')})`)
    return answers === 0 ? wants : told.flatMap(({ text, failed }) => (failed ? [] : `${text}.`)).join(' ')
  })
  const { text } = await generateText({ model, prompt: update.text, stopWhen: isStepCount(2), ...guarded })
  console.log(`    bot: ${[text, ...replies].filter(Boolean).join(' ')}\n`)
}

const vera = { id: 7, first_name: 'Vera' }
const alone = { from: vera, chat: { id: 7, type: 'private' } } as const
const family = { from: vera, chat: { id: -100, type: 'supergroup' } } as const

await handle({ ...alone, text: 'When is my appointment?' }, [['memory_recall', { query: 'appointment' }]])
await handle({ ...alone, from: { id: 9, first_name: 'Omar' }, text: 'When is hers?' }, [
  ['memory_recall', { query: 'appointment' }],
])
await handle({ ...family, text: 'When is my appointment?' }, [['memory_recall', { query: 'appointment' }]])
const searches = ['a', 'b', 'c'].map((one) => ['web_search', { query: one }] as const)
await handle({ ...family, text: 'Look up hinges!' }, searches)
await handle({ ...alone, text: 'Mail it to omar.' }, [
  ['send_mail', { to: 'omar' }],
  ['shell', { command: 'mail' }],
])
const mail = [['send_mail', { to: 'omar@example.com' }]] as const
await handle({ ...alone, text: 'omar@example.com' }, mail)
// The messenger authenticates the sender of /yes: a person approves, not the model.
for (const { id } of await gate.approvals.list({ status: 'pending', user: 'tg:7' }))
  await gate.approvals.decide(callerOf(alone), id, { decision: 'approve' })
await handle({ ...alone, text: '/yes' }, mail)
