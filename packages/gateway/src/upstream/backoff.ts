export interface BackoffOptions {
  /** Default 250. */
  readonly firstMs?: number
  /** Default 30,000. */
  readonly maxMs?: number
  /** How long a server must have been ready for the delay to begin anew. Default 60,000. */
  readonly resetMs?: number
  /** Gives 0 to 1. Default `Math.random`. */
  readonly random?: () => number
}

export interface Backoff {
  /** How long to wait now: half to all of a delay that doubles each time. */
  nextDelayMs(): number
  /** Tells it how long things went well. */
  ranFor(ms: number): void
}

export function createBackoff(options: BackoffOptions = {}): Backoff {
  const { firstMs = 250, maxMs = 30_000, resetMs = 60_000, random = Math.random } = options
  let nextMs = firstMs
  return {
    nextDelayMs() {
      const fullMs = nextMs
      nextMs = Math.min(nextMs * 2, maxMs)
      // Half of it at random: servers that failed together do not come back together.
      return fullMs * (0.5 + random() / 2)
    },
    ranFor(ms) {
      if (ms >= resetMs) nextMs = firstMs
    },
  }
}
