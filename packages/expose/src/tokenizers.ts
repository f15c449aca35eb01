import type { Tokenizer } from './options.ts'

const ENCODINGS = {
  /** GPT-4o and later. */
  o200k_base: () => import('gpt-tokenizer/encoding/o200k_base'),
  /** GPT-4 and GPT-3.5. */
  cl100k_base: () => import('gpt-tokenizer/encoding/cl100k_base'),
} as const
export type Encoding = keyof typeof ENCODINGS

/**
 * Returns a tokenizer of OpenAI's models, for `expose`. For other providers, who publish none, its counts are estimates.
 *
 * Needs the package `gpt-tokenizer` 4. Loading one takes about 0.1 s and 75 MB, so a program that
 * counts no tokens should not.
 *
 * @example
 * const exposure = expose(view, 'openai-chat', { tokenizer: await loadTokenizer() })
 */
export async function loadTokenizer(encoding: Encoding = 'o200k_base'): Promise<Tokenizer> {
  const { countTokens } = await ENCODINGS[encoding]()
  return {
    name: encoding,
    exactFor: ['openai-chat', 'openai-responses'],
    // A definition is a text like any other: `<|endoftext|>` in it is no special token.
    count: (text) => countTokens(text, { disallowedSpecial: new Set() }),
  }
}
