/** ECMAScript 2025: text that `JSON.stringify` writes as it is. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object }

/**
 * Returns the JSON text of a value as `JSON.stringify` does, and a `bigint` as its decimal digits.
 *
 * Every value that may hold an integer beyond 2^53 is written with this. A value without one costs as
 * much as with `JSON.stringify`.
 *
 * @throws {TypeError} for a value that holds itself
 * @example
 * toJsonText({ id: 1915883588174806058n }) // '{"id":1915883588174806058}'
 */
export function toJsonText(value: unknown, indent?: number): string {
  // A host may have given bigints a `toJSON`, which makes them texts.
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
