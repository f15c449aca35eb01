import type { View } from '../gate/view.ts'

/** The providers, the protocol and the frameworks that tools can be exposed to. */
export const EXPOSE_TARGETS = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'bedrock',
  'mcp',
  'langchain',
  'ai-sdk',
] as const
export type ExposeTarget = (typeof EXPOSE_TARGETS)[number]

/** Counts the tokens of a text. `@toolgate/core/tokens` has some. */
export interface Tokenizer {
  readonly name: string
  /** The targets whose models use it. */
  readonly exactFor: readonly ExposeTarget[]
  count(text: string): number
}

/** What the definitions cost, as JSON text. What a provider puts around them is its own affair. */
export interface TokenCount {
  readonly count: number
  /** Whether the target's own models count like this. */
  readonly exact: boolean
  readonly tokenizer: string
}

const BYTES_PER_TOKEN = 4

export function countTokens(text: string, bytes: number, target: string, tokenizer?: Tokenizer): TokenCount {
  if (!tokenizer)
    return { count: Math.ceil(bytes / BYTES_PER_TOKEN), exact: false, tokenizer: `${BYTES_PER_TOKEN} bytes a token` }
  return {
    count: tokenizer.count(text),
    exact: tokenizer.exactFor.some((exact) => exact === target),
    tokenizer: tokenizer.name,
  }
}

/**
 * How a step's tools are told to the model.
 *
 * `filter` sends them and no others. `mask` sends those of the whole run and limits the choice by the provider's
 * own means, so that its prompt cache keeps hitting. `defer` leaves the definitions to the provider's tool search.
 */
export type ExposeMode = 'filter' | 'mask' | 'defer'

export interface ExposeOptions {
  /** Default `filter`. Where a target has no means for it, it is `filter`, with a warning. */
  readonly mode?: ExposeMode | undefined
  /** What the step sees, of what the run's view sees. Default: all of it. */
  readonly step?: View | undefined
  /** The provider guarantees inputs that match, which takes a smaller JSON Schema. Default: as each tool's own `strict` says. */
  readonly strict?: boolean | undefined
  /** With `defer`: ids that are loaded from the start. */
  readonly loaded?: readonly string[] | undefined
  /** With `defer` for Anthropic: how its tool search looks for them. Default `bm25`. */
  readonly search?: 'bm25' | 'regex' | undefined
  /** For Gemini: which of its two forms schemas have. Default `json-schema`. */
  readonly schemas?: 'json-schema' | 'openapi' | undefined
  /** For the AI SDK: the provider behind it, whose own means `mask` then uses. */
  readonly provider?: 'openai' | undefined
  /** Counts the tokens. Without one they are estimated. */
  readonly tokenizer?: Tokenizer | undefined
}
