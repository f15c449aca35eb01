import type { View } from '@toolgate/core'

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

/** Counts the tokens of a text. `@toolgate/expose/tokens` has some. */
export interface Tokenizer {
  readonly name: string
  /** The targets whose models use this tokenizer. */
  readonly exactFor: readonly ExposeTarget[]
  count(text: string): number
}

/** The cost of the definitions as JSON text, without anything that a provider adds. */
export interface TokenCount {
  readonly count: number
  /** Whether the target's models use this tokenizer. */
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
 * How a step's tools are sent to the model.
 *
 * `filter` sends only the step's tools. `mask` sends all tools of the run and restricts the choice with the provider's own
 * option, so that the prompt cache is still hit. `defer` leaves the definitions to the provider's tool search.
 */
export type ExposeMode = 'filter' | 'mask' | 'defer'

export interface ExposeOptions {
  /** Default `filter`. A target that does not support the mode uses `filter`, with a warning. */
  readonly mode?: ExposeMode | undefined
  /** The view of the step, within the view of the run. Default: all of it. */
  readonly step?: View | undefined
  /** Whether the provider guarantees matching inputs, which allows fewer schema features. Default: each tool's own `strict`. */
  readonly strict?: boolean | undefined
  /** With `defer`: ids that are loaded from the start. */
  readonly loaded?: readonly string[] | undefined
  /** With `defer` for Anthropic: the search method of its tool search. Default `bm25`. */
  readonly search?: 'bm25' | 'regex' | undefined
  /** For Gemini: the form of schemas. Default `json-schema`. */
  readonly schemas?: 'json-schema' | 'openapi' | undefined
  /** For the AI SDK: the provider whose option `mask` uses. */
  readonly provider?: 'openai' | undefined
  /** Counts the tokens. Default: an estimate. */
  readonly tokenizer?: Tokenizer | undefined
}
