/** More digits than any id or amount has. Converting a longer text takes long. */
export const MAX_DIGITS = 1000
const TOO_LARGE = 10n ** BigInt(MAX_DIGITS)
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Returns an integer in its only form: a `number` up to 2^53 - 1, a `bigint` beyond. So equal integers are equal values and
 * have one hash. `undefined` for more than 1,000 digits.
 */
export function toInteger(value: bigint): number | bigint | undefined {
  if (value >= -LARGEST && value <= LARGEST) return Number(value)
  return value < TOO_LARGE && value > -TOO_LARGE ? value : undefined
}

/** Returns whether a number is an integer beyond 2^53 - 1, whose last digits may have been rounded. */
export function isBeyondExact(value: number): boolean {
  return (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) && Number.isInteger(value)
}

/** Returns a value that `===` and `Set` can compare: an integer beyond 2^53 - 1 becomes a `bigint`. */
export function toComparable(value: unknown): unknown {
  return typeof value === 'number' && isBeyondExact(value) ? BigInt(value) : value
}

/**
 * Returns whether plain JSON contains an integer beyond 2^53 - 1. Do not pass such a value to a function that takes only
 * numbers.
 */
export function holdsBigint(value: unknown): boolean {
  if (typeof value === 'bigint') return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsBigint)
}
