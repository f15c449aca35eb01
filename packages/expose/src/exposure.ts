import type { ExposeMode, ExposeTarget, TokenCount } from './options.ts'
import type { AiSdkTools, LangChainTool, McpTool } from './targets/frameworks.ts'
import type {
  AnthropicTool,
  BedrockTool,
  GeminiTool,
  OpenAiChatTool,
  OpenAiResponsesTool,
} from './targets/providers.ts'

/** The tools of each target, in the types of its SDK. */
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

/** A feature that a target cannot express, and its replacement. */
export interface ExposeWarning {
  /** The tool's id. Empty for the exposure as a whole. */
  readonly tool: string
  /** RFC 6901 pointer into the tool's input schema, or into its output schema if the feature begins with `outputSchema`. */
  readonly path: string
  /** The keyword of JSON Schema, or the field of the tool. */
  readonly feature: string
  readonly from: string
  /** The replacement. Absent if there is none. */
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

/** Translates between tool ids and the exposed names. */
export interface ExposedNames {
  toId(name: string): string | undefined
  toName(id: string): string | undefined
}

/**
 * The tools of a view in the form of a target. Frozen and shared: the same view, target and options return the same object.
 * The array types are mutable only because the SDKs require it.
 */
export interface Exposure<T extends ExposeTarget = ExposeTarget> {
  readonly target: T
  /** The mode that was used: `filter` if the target does not support the requested one. */
  readonly mode: ExposeMode
  readonly tools: ExposedTools[T]
  /** The fields of the target's request that carry the tools and the mask, to be spread into it. */
  readonly request: Readonly<Record<string, unknown>>
  readonly names: ExposedNames
  /** Sorted by tool id, path and feature. */
  readonly warnings: readonly ExposeWarning[]
  /** Sorted by tool id. */
  readonly errors: readonly ExposeError[]
  readonly tokens: TokenCount
  /** The size of the tools as JSON, in UTF-8 bytes. */
  readonly bytes: number
  /** Returns an input in the tool's own form. In strict modes, the model writes null for an absent property. */
  toInput(id: string, input: unknown): unknown
}
