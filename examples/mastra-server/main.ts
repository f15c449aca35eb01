// A client of Mastra's server that claims to be an admin, a person who approves, and what the tools really did.
import type { MastraModelConfig } from '@mastra/core/llm'
import { ask } from '../support/ask.ts'
import { scriptedModel } from '../support/scripted-model.ts'
import { start } from './app.ts'

// A scripted model that calls a tool it was not sent.
const model = scriptedModel(({ answers, sent }) => {
  console.log(`  the model sees: ${sent.join(', ')}`)
  return answers > 0
    ? 'That is all.'
    : [
        ['pay', { what: '5 cents' }],
        ['remove', { what: 'all' }],
      ]
})
const server = await start(model as unknown as MastraModelConfig, (what) => console.log(`  it really ran: ${what}`))

const askAs = (who: string, path: string, json?: object) =>
  ask<Answer>(`${server.url}${path}`, { token: `token-of-${who}`, ...(json && { json }) })

interface Answer {
  readonly text: string
  readonly finishReason: string
  readonly runId: string
  readonly suspendPayload: { readonly toolCallId: string; readonly toolName: string }
}

console.log('nobody asks')
console.log(`  ${(await askAs('nobody', '/api/agents/desk/generate', { messages: ['Pay.'] })).status}`)

console.log('\nvera asks, as the admin that she is not')
const forged = { caller: { user: 'ada', roles: ['admin'] }, mastra__user: { id: 'ada', roles: ['admin'] } }
const paused = await askAs('vera', '/api/agents/desk/generate', {
  messages: ['Pay, and remove.'],
  requestContext: forged,
})
const { finishReason, runId, suspendPayload } = paused.body
console.log(`  ${finishReason} before ${suspendPayload.toolName}`)

const resume = { runId, toolCallId: suspendPayload.toolCallId, requestContext: forged }
console.log('\nvera resumes it without an approval')
console.log(`  ${(await askAs('vera', '/api/agents/desk/approve-tool-call-generate', resume)).body.finishReason}`)

const { body: pending } = await ask<{ id: string }[]>(`${server.url}/approvals`, { token: 'token-of-vera' })
const id = pending[0]?.id
console.log('\nbob may not decide it')
console.log(`  ${JSON.stringify((await askAs('bob', `/approvals/${id}`, { decision: 'approve' })).body)}`)

console.log('\nomar, an approver, approves it, and vera resumes it')
await askAs('omar', `/approvals/${id}`, { decision: 'approve' })
console.log(`  ${(await askAs('vera', '/api/agents/desk/approve-tool-call-generate', resume)).body.text}`)

console.log('\nThe audit')
for (const { event, user_id = '', tool = '', reason = '' } of server.audit.records)
  console.log(`  ${event} ${user_id} ${tool} ${reason}`.trimEnd())
server.close()
