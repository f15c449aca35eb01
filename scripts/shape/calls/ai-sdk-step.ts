import { fromAiSdk, guard } from '@toolgate/adapters/ai-sdk'
import { createGate, defineCaller } from '@toolgate/core'
import { generateText, isStepCount, jsonSchema, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { record } from './record.ts'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const model = new MockLanguageModelV4({
  doGenerate: async () => ({
    content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'search', input: '{"q":"gates"}' }],
    finishReason: { unified: 'tool-calls', raw: undefined },
    usage,
    warnings: [],
  }),
})
const search = tool({
  inputSchema: jsonSchema<{ q: string }>({ type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }),
  execute: ({ q }) => `results for ${q}`,
})
const gate = createGate({
  tools: fromAiSdk({ search }),
  policy: { deny: [{ match: 'search', when: "caller.user == 'eve'" }] },
})
const caller = defineCaller({ user: 'vera', roles: ['viewer'] })
await record(async () =>
  generateText({ model, prompt: 'Find gates.', stopWhen: isStepCount(1), ...(await guard(gate, caller)) }),
)
