/** More digits than any id or amount has. A text of many digits takes long to make. */
export const MAX_DIGITS = 1000
const TOO_LARGE = 10n ** BigInt(MAX_DIGITS)
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Returns an integer in its one form: a `number` up to 2^53 - 1, a `bigint` beyond. So equal integers are equal values
 * and have one hash. `undefined` for more than 1,000 digits.
 */
export function toInteger(value: bigint): number | bigint | undefined {
  if (value >= -LARGEST && value <= LARGEST) return Number(value)
  return value < TOO_LARGE && value > -TOO_LARGE ? value : undefined
}

/** Whether a number is an integer beyond 2^53 - 1. Its last digits may have been rounded before it came here. */
export function isBeyondExact(value: number): boolean {
  return (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) && Number.isInteger(value)
}

/** Returns a number as a value that JavaScript's `===` and `Set` compare as mathematics does: integers beyond 2^53 - 1 as `bigint`. */
export function toComparable(value: unknown): unknown {
  return typeof value === 'number' && isBeyondExact(value) ? BigInt(value) : value
}

/** Whether plain JSON holds an integer beyond 2^53 - 1. A function that takes numbers alone cannot be called with it. */
export function holdsBigint(value: unknown): boolean {
  if (typeof value === 'bigint') return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsBigint)
}
