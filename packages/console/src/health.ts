/** Whether the page is up to date. */
export interface Health {
  readonly isStale: boolean
  /** Wall-clock milliseconds of the last answer. */
  readonly sinceMs: number
}

export interface HealthStore {
  readonly current: Health
  /** The gateway answered. */
  ok(): void
  /** The gateway did not answer, or failed. */
  failed(): void
  subscribe(listener: () => void): () => void
}

/** Keeps when the gateway last answered. Listeners are called only when `isStale` changes. */
export function createHealth(nowMs: () => number = Date.now): HealthStore {
  const listeners = new Set<() => void>()
  let lastOkMs = nowMs()
  let current: Health = { isStale: false, sinceMs: lastOkMs }
  return {
    get current() {
      return current
    },
    ok() {
      lastOkMs = nowMs()
      if (current.isStale) turn(false)
    },
    failed() {
      if (!current.isStale) turn(true)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  function turn(isStale: boolean): void {
    current = { isStale, sinceMs: lastOkMs }
    for (const listener of listeners) listener()
  }
}

export const health: HealthStore = createHealth()
