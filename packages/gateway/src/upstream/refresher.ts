const DEBOUNCE_MS = 100
const MIN_GAP_MS = 1_000
const MIN_TTL_MS = 30_000
/** The longest delay of a timer. */
const MAX_TTL_MS = 2 ** 31 - 1

/** Runs a refresh when it is asked for: many requests are one run, and there is one at a time. */
export interface Refresher {
  readonly request: () => void
  /** Asks again once the list is stale. */
  requestAfterTtl(ttlMs: number | undefined): void
  close(): void
}

/** `refresh` gives the TTL of what it read and does not reject. */
export function createRefresher(refresh: () => Promise<number | undefined>): Refresher {
  let soon: NodeJS.Timeout | undefined
  let stale: NodeJS.Timeout | undefined
  let running = false
  let again = false
  let closed = false
  const refresher: Refresher = {
    request: () => schedule(DEBOUNCE_MS),
    requestAfterTtl(ttlMs) {
      clearTimeout(stale)
      if (ttlMs === undefined || closed) return
      stale = setTimeout(refresher.request, Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS))
    },
    close() {
      closed = true
      clearTimeout(soon)
      clearTimeout(stale)
    },
  }
  return refresher

  function schedule(delayMs: number): void {
    if (running) again = true
    else if (!closed) soon ??= setTimeout(() => void run(), delayMs)
  }

  async function run(): Promise<void> {
    soon = undefined
    running = true
    again = false
    const ttlMs = await refresh()
    running = false
    refresher.requestAfterTtl(ttlMs)
    // A server that reports a change at every reading is read once a second.
    if (again) schedule(MIN_GAP_MS)
  }
}
