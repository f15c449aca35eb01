import { ANY_OUTPUT, OPENAI, OPENAI_STRICT } from '../schema/dialect.ts'
import { NOTHING, present, type Target, withTools } from './target.ts'

export interface OpenAiFunctionTool {
  type: 'function'
  name: string
  description?: string
  parameters: Record<string, unknown>
  strict: boolean
  output_schema?: Record<string, unknown>
  defer_loading?: boolean
}

/** The provider's own search over what was deferred. */
export interface OpenAiToolSearch {
  type: 'tool_search'
}
export type OpenAiResponsesTool = OpenAiFunctionTool | OpenAiToolSearch

/** OpenAI's Responses. `strict` is always said: without it the provider tries strict first. */
export const openAiResponses: Target = {
  dialect: OPENAI,
  strictDialect: OPENAI_STRICT,
  outputDialect: ANY_OUTPUT,
  keeps: NOTHING,
  canMask: true,
  canDefer: true,
  define: ({ name, description, input, output, strict, deferred }): OpenAiFunctionTool => ({
    type: 'function',
    ...present({
      name,
      description,
      parameters: input,
      strict,
      output_schema: output,
      defer_loading: deferred || undefined,
    }),
  }),
  collect(named, { mask, deferred }) {
    const functions = named.map(({ definition }) => definition as OpenAiFunctionTool)
    const search: readonly OpenAiToolSearch[] = deferred && functions.length > 0 ? [{ type: 'tool_search' }] : []
    const tools = [...search, ...functions]
    return { tools, request: withTools(tools, mask && { tool_choice: toToolChoice(mask) }) }
  },
}

function toToolChoice(mask: readonly string[]): object | 'none' {
  if (mask.length === 0) return 'none'
  return { type: 'allowed_tools', mode: 'auto', tools: mask.map((name) => ({ type: 'function', name })) }
}
