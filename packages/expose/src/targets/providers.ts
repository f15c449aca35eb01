import { sha256Hex } from '@toolgate/values'
import type { JsonSchema } from '@toolgate/core'
import {
  ANTHROPIC,
  ANTHROPIC_STRICT,
  ANY_OUTPUT,
  BEDROCK_STRICT,
  FLAT,
  GEMINI,
  GEMINI_OPENAPI,
  GEMINI_OPENAPI_OUTPUT,
  GEMINI_OUTPUT,
  OPENAI,
  OPENAI_STRICT,
} from '../schema/dialect.ts'
import { NOTHING, objectSchema, type ObjectSchema, type Parts, present, type Target, withTools } from './target.ts'

export interface OpenAiChatTool {
  type: 'function'
  function: { name: string; description?: string; parameters: Record<string, unknown>; strict?: boolean }
}

/** OpenAI's Chat Completions. It takes 128 tools and descriptions of 1,024 characters. */
export const openAiChat: Target<OpenAiChatTool> = {
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
    const tools = named.map(({ definition }) => definition)
    return { tools, request: withTools(tools, mask && { tool_choice: toChatChoice(mask) }) }
  },
}

function toChatChoice(mask: readonly string[]): JsonSchema | 'none' {
  if (mask.length === 0) return 'none'
  const tools = mask.map((name) => ({ type: 'function', function: { name } }))
  return { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools } }
}

interface OpenAiFunctionTool {
  type: 'function'
  name: string
  description?: string
  parameters: Record<string, unknown>
  strict: boolean
  output_schema?: Record<string, unknown>
  defer_loading?: boolean
}

/** The provider's own search over deferred tools. */
interface OpenAiToolSearch {
  type: 'tool_search'
}
export type OpenAiResponsesTool = OpenAiFunctionTool | OpenAiToolSearch

/** OpenAI's Responses. `strict` is always set: without it the provider tries strict first. */
export const openAiResponses: Target<OpenAiFunctionTool> = {
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
    const functions = named.map(({ definition }) => definition)
    const search: readonly OpenAiToolSearch[] = deferred && functions.length > 0 ? [{ type: 'tool_search' }] : []
    const tools = [...search, ...functions]
    return { tools, request: withTools(tools, mask && { tool_choice: toResponsesChoice(mask) }) }
  },
}

function toResponsesChoice(mask: readonly string[]): object | 'none' {
  if (mask.length === 0) return 'none'
  return { type: 'allowed_tools', mode: 'auto', tools: mask.map((name) => ({ type: 'function', name })) }
}

interface AnthropicCustomTool {
  name: string
  description?: string
  input_schema: ObjectSchema
  strict?: boolean
  defer_loading?: boolean
}

/** The provider's own search over deferred tools. */
type AnthropicToolSearch =
  | { type: 'tool_search_tool_bm25_20251119'; name: 'tool_search_tool_bm25' }
  | { type: 'tool_search_tool_regex_20251119'; name: 'tool_search_tool_regex' }
export type AnthropicTool = AnthropicCustomTool | AnthropicToolSearch

const SEARCH = {
  bm25: { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
  regex: { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
} as const

/** Anthropic's Messages. It can defer definitions, but cannot mask tools. */
export const anthropic: Target<AnthropicCustomTool> = {
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
      input_schema: objectSchema(input),
      strict: strict || undefined,
      defer_loading: deferred || undefined,
    }),
  collect(named, { deferred, options }) {
    const custom = named.map(({ definition }) => definition)
    const search: readonly AnthropicToolSearch[] =
      deferred && custom.length > 0 ? [SEARCH[options.search ?? 'bm25']] : []
    const tools = [...search, ...custom]
    return { tools, request: withTools(tools) }
  },
}

export interface GeminiFunction {
  name: string
  description?: string
  parametersJsonSchema?: unknown
  responseJsonSchema?: unknown
  /** A schema in OpenAPI form: the message `Schema`. */
  parameters?: Record<string, unknown>
  response?: Record<string, unknown>
}
export interface GeminiTool {
  functionDeclarations: GeminiFunction[]
}

const shared = {
  keeps: NOTHING,
  canMask: true,
  canDefer: false,
  toName,
  collect(named, { mask }) {
    const functionDeclarations = named.map(({ definition }) => definition)
    const tools: GeminiTool[] = functionDeclarations.length > 0 ? [{ functionDeclarations }] : []
    if (tools.length === 0) return { tools, request: {} }
    return { tools, request: { config: { tools, ...(mask && { toolConfig: toToolConfig(mask) }) } } }
  },
} satisfies Partial<Target<GeminiFunction>>

/** Gemini requires a letter or `_` first. No other exposed name begins with `_`. */
function toName(name: string): string {
  if (/^[A-Za-z_]/.test(name)) return name
  return name.length < 64 ? `_${name}` : `_${name.slice(0, 50)}__${sha256Hex(name).slice(0, 10)}_`
}

/** Gemini, with schemas in JSON Schema. */
export const gemini: Target<GeminiFunction> = {
  ...shared,
  dialect: GEMINI,
  outputDialect: GEMINI_OUTPUT,
  define: ({ name, description, input, output }: Parts): GeminiFunction =>
    present({ name, description, parametersJsonSchema: input, responseJsonSchema: output }),
}

/** Gemini, with schemas in its subset of OpenAPI 3.0. A function without parameters has no `parameters`. */
export const geminiOpenApi: Target<GeminiFunction> = {
  ...shared,
  writesInto: true,
  dialect: GEMINI_OPENAPI,
  outputDialect: GEMINI_OPENAPI_OUTPUT,
  define: ({ name, description, input, output }: Parts): GeminiFunction =>
    present({
      name,
      description,
      parameters: Object.keys(input['properties'] ?? {}).length === 0 ? undefined : input,
      response: output,
    }),
}

/** `VALIDATED` also allows an answer in text; `AUTO` accepts no names. */
function toToolConfig(mask: readonly string[]): object {
  const functionCallingConfig =
    mask.length === 0 ? { mode: 'NONE' } : { mode: 'VALIDATED', allowedFunctionNames: [...mask] }
  return { functionCallingConfig }
}

export interface BedrockTool {
  toolSpec: { name: string; description?: string; inputSchema: { json: JsonDocument }; strict?: boolean }
}
type JsonDocument = null | boolean | number | string | JsonDocument[] | { [key: string]: JsonDocument }

/** Amazon Bedrock's Converse. A `toolConfig` without tools is an error, so an empty one is left out. */
export const bedrock: Target<BedrockTool> = {
  dialect: FLAT,
  strictDialect: BEDROCK_STRICT,
  keeps: NOTHING,
  canMask: false,
  canDefer: false,
  define: ({ name, description, input, strict }): BedrockTool => ({
    toolSpec: present({
      name,
      description,
      inputSchema: { json: input as JsonDocument },
      strict: strict || undefined,
    }),
  }),
  collect(named) {
    const tools = named.map(({ definition }) => definition)
    return { tools, request: tools.length === 0 ? {} : { toolConfig: { tools } } }
  },
}
