import type { ExposeMode, ExposeTarget, TokenCount } from './options.ts'
import type { AiSdkTools, LangChainTool, McpTool } from './targets/frameworks.ts'
import type {
  AnthropicTool,
  BedrockTool,
  GeminiTool,
  OpenAiChatTool,
  OpenAiResponsesTool,
} from './targets/providers.ts'

/** What the tools of each target are, as its own SDK takes them. */
export interface ExposedTools extends Record<ExposeTarget, object> {
  'openai-chat': OpenAiChatTool[]
  'openai-responses': OpenAiResponsesTool[]
  anthropic: AnthropicTool[]
  gemini: GeminiTool[]
  bedrock: BedrockTool[]
  mcp: McpTool[]
  langchain: LangChainTool[]
  'ai-sdk': AiSdkTools
}

/** One thing that a target cannot express, and what became of it. */
export interface ExposeWarning {
  /** The tool's id. Empty: it is about the exposure as a whole. */
  readonly tool: string
  /** RFC 6901, into the tool's input schema, or its output schema where the feature begins with `outputSchema`. */
  readonly path: string
  /** The keyword of JSON Schema, or the field of the tool. */
  readonly feature: string
  readonly from: string
  /** What stands there now. Absent: nothing. */
  readonly to?: string
  /** `described`: moved into the description, for the model to read. */
  readonly action: 'removed' | 'rewritten' | 'described'
}

export type ExposeErrorCode =
  | 'remote_ref'
  | 'unresolved_ref'
  | 'schema_too_large'
  | 'schema_unusable'
  | 'parameter_name'
  | 'name_collision'
  | 'name_reserved'
  | 'too_many_tools'

/** A tool that is not exposed. */
export interface ExposeError {
  readonly tool: string
  readonly path: string
  readonly code: ExposeErrorCode
  readonly message: string
}

/** Names on the wire of what was exposed, both ways. */
export interface ExposedNames {
  toId(name: string): string | undefined
  toName(id: string): string | undefined
}

/**
 * The tools of a view as a target takes them. Frozen and shared: the same view, target and options give the same
 * object. Only the arrays' types can be written to, as the SDKs ask for that.
 */
export interface Exposure<T extends ExposeTarget = ExposeTarget> {
  readonly target: T
  /** What was done, which is `filter` where the target has no means for what was asked. */
  readonly mode: ExposeMode
  readonly tools: ExposedTools[T]
  /** The fields of the target's request that carry the tools and the mask, to be spread into it. */
  readonly request: Readonly<Record<string, unknown>>
  readonly names: ExposedNames
  /** By tool id, path and feature. */
  readonly warnings: readonly ExposeWarning[]
  /** By tool id. */
  readonly errors: readonly ExposeError[]
  readonly tokens: TokenCount
  /** Of the tools as JSON, in UTF-8. */
  readonly bytes: number
  /** Returns an input as the tool takes it: strict modes make the model say null where a property may be absent. */
  toInput(id: string, input: unknown): unknown
}
