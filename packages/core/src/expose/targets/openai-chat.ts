import type { JsonSchema } from '../../tools/tool.ts'
import { OPENAI, OPENAI_STRICT } from '../schema/dialect.ts'
import { NOTHING, present, type Target, withTools } from './target.ts'

export interface OpenAiChatTool {
  type: 'function'
  function: { name: string; description?: string; parameters: Record<string, unknown>; strict?: boolean }
}

/** OpenAI's Chat Completions. It takes 128 tools and descriptions of 1,024 characters. */
export const openAiChat: Target = {
  dialect: OPENAI,
  strictDialect: OPENAI_STRICT,
  keeps: NOTHING,
  maxTools: 128,
  maxDescription: 1024,
  canMask: true,
  canDefer: false,
  define: ({ name, description, input, strict }): OpenAiChatTool => ({
    type: 'function',
    function: present({ name, description, parameters: input, strict: strict || undefined }),
  }),
  collect(named, { mask }) {
    const tools = named.map(({ definition }) => definition as OpenAiChatTool)
    return { tools, request: withTools(tools, mask && { tool_choice: toToolChoice(mask) }) }
  },
}

function toToolChoice(mask: readonly string[]): JsonSchema | 'none' {
  if (mask.length === 0) return 'none'
  const tools = mask.map((name) => ({ type: 'function', function: { name } }))
  return { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } }
}
