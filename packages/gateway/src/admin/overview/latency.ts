/** The ratio of one bin's end to that of the bin before, so a percentile is off by 2.5 % at most. */
const GROWTH = 1.05
const LOG_GROWTH = Math.log(GROWTH)
/** The shortest counted duration. Shorter ones count as this. */
const LEAST_MS = 0.1

/**
 * A histogram of durations with logarithmic bins. Its size depends on the number of different bins, not of durations.
 */
export class Latencies {
  readonly #bins = new Map<number, number>()
  #count = 0

  add(ms: number): void {
    const bin = Math.ceil(Math.log(Math.max(LEAST_MS, ms)) / LOG_GROWTH)
    this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + 1)
    this.#count++
  }

  merge(other: Latencies): void {
    for (const [bin, count] of other.#bins) this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + count)
    this.#count += other.#count
  }

  /** Returns `undefined` without durations. */
  percentiles(): { readonly p50: number; readonly p95: number; readonly p99: number } | undefined {
    if (this.#count === 0) return undefined
    const bins = [...this.#bins].toSorted(([a], [b]) => a - b)
    const at = (part: number): number => {
      let left = Math.ceil(this.#count * part)
      const bin = bins.find(([, count]) => (left -= count) <= 0)?.[0] ?? 0
      const ms = (2 * GROWTH ** bin) / (1 + GROWTH)
      return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)
    }
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
  }
}
