import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { applyApprovals, guard } from '@toolgate/adapters/ai-sdk'
import { convertToModelMessages, isStepCount, streamText, type UIMessage } from 'ai'
import { gate } from '../../../lib/gate.ts'
import { signedIn } from '../../../lib/session.ts'

const provider = createOpenAICompatible({
  name: 'model',
  baseURL: process.env['MODEL_URL'] ?? 'http://127.0.0.1:11434/v1',
})

export async function POST(request: Request): Promise<Response> {
  const caller = await signedIn()
  if (!caller) return new Response('sign in first', { status: 401 })
  // The page sends the whole conversation, so all of it is only a claim.
  const { messages } = (await request.json()) as { messages: UIMessage[] }
  const history = await convertToModelMessages(messages)
  await applyApprovals(gate, caller, history)
  const result = streamText({
    model: provider('scripted'),
    messages: history,
    stopWhen: isStepCount(5),
    ...(await guard(gate, caller)),
  })
  return result.toUIMessageStreamResponse({ originalMessages: messages })
}
