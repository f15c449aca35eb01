/** Buckets of a chart, from `first` until before `end`. */
export interface BucketRange {
  readonly first: number
  readonly end: number
}

interface Buckets {
  readonly since: number
  readonly bucketMs: number
  readonly buckets: readonly unknown[]
}

/** Returns the buckets from one to another, in either order, both included. */
export function joined(a: number, b: number): BucketRange {
  return { first: Math.min(a, b), end: Math.max(a, b) + 1 }
}

/**
 * Returns the buckets that a range of times touches, or `undefined` if it touches none or is not a range.
 *
 * @example
 * toBucketRange('1970-01-01T00:00:10Z', '1970-01-01T00:00:20Z', { since: 0, bucketMs: 5000, buckets }) // 2 to 4
 */
export function toBucketRange(
  from: string,
  to: string,
  { since, bucketMs, buckets }: Buckets,
): BucketRange | undefined {
  const first = Math.max(0, Math.floor((Date.parse(from) - since) / bucketMs))
  const end = Math.min(buckets.length, Math.ceil((Date.parse(to) - since) / bucketMs))
  return first < end ? { first, end } : undefined
}
