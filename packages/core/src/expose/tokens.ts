import type { ExposeTarget } from './target-names.ts'

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
