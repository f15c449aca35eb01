import { ANTHROPIC, ANTHROPIC_STRICT } from '../schema/dialect.ts'
import { NOTHING, present, type Target, withTools } from './target.ts'

export interface AnthropicCustomTool {
  name: string
  description?: string
  input_schema: { type: 'object'; [keyword: string]: unknown }
  strict?: boolean
  defer_loading?: boolean
}

/** The provider's own search over what was deferred. */
export type AnthropicToolSearch =
  | { type: 'tool_search_tool_bm25_20251119'; name: 'tool_search_tool_bm25' }
  | { type: 'tool_search_tool_regex_20251119'; name: 'tool_search_tool_regex' }
export type AnthropicTool = AnthropicCustomTool | AnthropicToolSearch

const SEARCH = {
  bm25: { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
  regex: { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
} as const

/** Anthropic's Messages. It can defer definitions, and has nothing that masks some of an array. */
export const anthropic: Target = {
  dialect: ANTHROPIC,
  strictDialect: ANTHROPIC_STRICT,
  keeps: NOTHING,
  canMask: false,
  canDefer: true,
  reserved: new Set(Object.values(SEARCH).map(({ name }) => name)),
  define: ({ name, description, input, strict, deferred }): AnthropicCustomTool =>
    present({
      name,
      description,
      input_schema: input as AnthropicCustomTool['input_schema'],
      strict: strict || undefined,
      defer_loading: deferred || undefined,
    }),
  collect(named, { deferred, options }) {
    const custom = named.map(({ definition }) => definition as AnthropicCustomTool)
    const search: readonly AnthropicToolSearch[] =
      deferred && custom.length > 0 ? [SEARCH[options.search ?? 'bm25']] : []
    const tools = [...search, ...custom]
    return { tools, request: withTools(tools) }
  },
}
