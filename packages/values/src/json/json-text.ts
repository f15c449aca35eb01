/** ECMAScript 2025: marks text that `JSON.stringify` writes unchanged. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object }

/**
 * Returns the JSON text of a value like `JSON.stringify`, with a `bigint` as its decimal digits.
 *
 * Use it for every value that may contain an integer beyond 2^53. A value without one costs no more than with
 * `JSON.stringify`.
 *
 * @throws {TypeError} for a circular value
 * @example
 * toJsonText({ id: 1915883588174806058n }) // '{"id":1915883588174806058}'
 */
export function toJsonText(value: unknown, indent?: number): string {
  // A host may have defined `toJSON` for bigints, which writes them as texts.
  if ('toJSON' in BigInt.prototype) return JSON.stringify(value, digits, indent)
  try {
    return JSON.stringify(value, undefined, indent)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return JSON.stringify(value, digits, indent)
  }
}

function digits(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const own = this[key]
  return typeof own === 'bigint' ? rawJSON(String(own)) : value
}
