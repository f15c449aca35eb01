import { holdsBigint, readJson } from '@toolgate/values/json'

/** The text that the model reads about an integer that no JavaScript number can hold. */
const TOO_LARGE_INTEGER =
  'holds an integer beyond 2^53, which a JavaScript number cannot hold: send it as text (a JSON string)'

/**
 * Reads the arguments that a model wrote. A JavaScript tool takes numbers, so an integer that a number cannot hold is
 * refused, and never rounded.
 *
 * @throws {JsonFault} for a text that is not JSON
 */
export function readModelJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  const value = readJson(text, { integers: 'exact' })
  return holdsBigint(value) ? { problem: TOO_LARGE_INTEGER } : { value }
}
