import { holdsBigint, readJson } from '@toolgate/values/json'

/** The text for the model about an integer that a JavaScript number cannot hold. */
const TOO_LARGE_INTEGER =
  'holds an integer beyond 2^53, which a JavaScript number cannot hold: send it as text (a JSON string)'

/**
 * Reads the arguments that a model wrote. An integer that a JavaScript number cannot hold is refused, and never
 * rounded.
 *
 * @throws {JsonFault} for a text that is not JSON
 */
export function readModelJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  const value = readJson(text, { integers: 'exact' })
  return holdsBigint(value) ? { problem: TOO_LARGE_INTEGER } : { value }
}
