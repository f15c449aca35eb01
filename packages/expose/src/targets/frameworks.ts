import type { JsonSchema, ToolAnnotations } from '@toolgate/core'
import { ANY, ANY_OUTPUT, FRAMEWORK, OPENAI_STRICT } from '../schema/dialect.ts'
import { EVERYTHING, objectSchema, type ObjectSchema, present, type Target } from './target.ts'

interface McpIcon {
  src: string
  mimeType?: string
  sizes?: string[]
  theme?: 'light' | 'dark'
}

export interface McpTool {
  name: string
  title?: string
  description?: string
  inputSchema: ObjectSchema
  outputSchema?: { [keyword: string]: unknown }
  annotations?: ToolAnnotations
  icons?: McpIcon[]
  _meta?: { [name: string]: unknown }
}

/** `tools/list` of MCP 2026-07-28, which has a place for everything. It filters; deferring is for meta-tools. */
export const mcp: Target<McpTool> = {
  dialect: ANY,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: false,
  define: ({ name, title, description, input, output, annotations, icons, _meta, fields }): McpTool =>
    present({
      name,
      title,
      description,
      inputSchema: objectSchema(input),
      outputSchema: output,
      annotations,
      icons: icons as McpIcon[] | undefined,
      _meta,
      ...fields,
    }),
  collect(named) {
    const tools = named.map(({ definition }) => definition)
    return { tools, request: { tools } }
  },
}

/** The fields of `tool(run, fields)` and `model.bindTools([…])`. */
export interface LangChainTool {
  name: string
  description: string
  schema: ObjectSchema
  metadata?: Record<string, unknown>
  /** Read by `providerToolSearchMiddleware`. */
  extras?: { defer_loading: true }
}

/** LangChain with any model: schemas are those that every provider accepts. */
export const langchain: Target<LangChainTool> = {
  dialect: FRAMEWORK,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: true,
  define: ({
    name,
    description = '',
    input,
    output,
    title,
    annotations,
    icons,
    _meta,
    fields,
    deferred,
  }): LangChainTool => {
    const metadata = present({ title, annotations, outputSchema: output, icons, _meta, ...fields })
    return present({
      name,
      description,
      schema: objectSchema(input),
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
      extras: deferred ? ({ defer_loading: true } as const) : undefined,
    })
  },
  collect(named) {
    const tools = named.map(({ definition }) => definition)
    return { tools, request: { tools } }
  },
}

/** The result of the SDK's own `jsonSchema(…)`. The symbol is registered, so that copies of the SDK recognise it. */
interface AiSdkSchema {
  readonly jsonSchema: JsonSchema
  readonly validate: undefined
}

/** A tool without `execute`: calls go through the gate. */
interface AiSdkTool {
  description?: string
  inputSchema: AiSdkSchema
  outputSchema?: AiSdkSchema
  strict?: boolean
  deferLoading?: boolean
  metadata?: Record<string, unknown>
}

/** By name on the wire. */
export type AiSdkTools = Record<string, AiSdkTool>

/**
 * The `tools` of `generateText` and `streamText` (AI SDK 7).
 *
 * `mask` is OpenAI's, if that is the provider; `defer` is the SDK's own, for its `toolSearch()`.
 */
export const aiSdk: Target<AiSdkTool> = {
  dialect: FRAMEWORK,
  strictDialect: OPENAI_STRICT,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: true,
  define: ({ description, input, output, title, annotations, icons, _meta, fields, strict, deferred }): AiSdkTool => {
    const metadata = present({ title, annotations, icons, _meta, ...fields })
    return present({
      description,
      inputSchema: toSchema(input),
      outputSchema: output && toSchema(output),
      strict: strict || undefined,
      deferLoading: deferred || undefined,
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    })
  },
  collect(named, { mask }) {
    const tools: AiSdkTools = Object.fromEntries(named.map(({ name, definition }) => [name, definition]))
    return { tools, request: { tools, ...(mask && toChoice(mask)) } }
  },
}

/** The AI SDK with OpenAI behind it. */
export const aiSdkOnOpenAi: Target<AiSdkTool> = { ...aiSdk, canMask: true }

const SCHEMA = Symbol.for('vercel.ai.schema')

function toSchema(jsonSchema: JsonSchema): AiSdkSchema {
  return { [SCHEMA]: true, jsonSchema, validate: undefined } as AiSdkSchema
}

/** `allowedTools` takes at least one name. */
function toChoice(mask: readonly string[]): object {
  if (mask.length === 0) return { toolChoice: 'none' }
  return { providerOptions: { openai: { allowedTools: { toolNames: [...mask] } } } }
}
