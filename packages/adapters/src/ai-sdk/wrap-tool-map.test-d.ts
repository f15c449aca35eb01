// Compiled by `npm run typecheck` and never run: an unused `@ts-expect-error` is an error.
import { generateText, type LanguageModel, tool } from 'ai'
import { z } from 'zod'
import { wrapToolMapWithHooks } from './wrap-tool-map.ts'

declare const model: LanguageModel
const tools = {
  search: tool({ inputSchema: z.object({ q: z.string() }), execute: ({ q }) => [q] }),
  remove: tool({ inputSchema: z.object({ id: z.number() }), execute: () => 'gone' as const }),
}

// The map that is given has the types of the one that was taken: its inputs and outputs, as the SDK infers them.
const wrapped = wrapToolMapWithHooks(tools, {
  beforeToolCall: ({ toolName }) => void (toolName satisfies 'search' | 'remove'),
})
wrapped.tools satisfies typeof tools
wrapped.notEnforceable satisfies readonly ('search' | 'remove')[]
const { toolResults } = await generateText({ model, prompt: '', tools: wrapped.tools })
for (const result of toolResults) {
  if (result.dynamic) continue
  if (result.toolName === 'search') result.output satisfies string[]
  else result.output satisfies 'gone'
  // @ts-expect-error: "serach" is no tool
  if (result.toolName === 'serach') continue
}

// Names are those of the map.
wrapToolMapWithHooks(tools, {
  // @ts-expect-error: "delete" is no tool
  beforeToolCall: ({ toolName }) => ({ allow: toolName !== 'delete' }),
})
// @ts-expect-error: "serach" is no tool
wrapToolMapWithHooks(tools, { afterToolCall() {} }, { acceptUnenforceable: ['serach'] })
// @ts-expect-error: an answer says "allow"
wrapToolMapWithHooks(tools, { beforeToolCall: () => ({ alow: false }) })
// @ts-expect-error: an answer is no boolean
wrapToolMapWithHooks(tools, { beforeToolCall: () => false })
