import { createStore } from './store.ts'

/** Whether the page is up to date. */
export interface Health {
  readonly isStale: boolean
  /** The time of the last answer, in wall-clock milliseconds. */
  readonly sinceMs: number
}

interface HealthStore {
  readonly current: Health
  /** Notes that the gateway answered. */
  ok(): void
  /** Notes that the gateway did not answer, or failed. */
  failed(): void
  subscribe(listener: () => void): () => void
}

/** Stores the time of the gateway's last answer. Listeners are called only when `isStale` changes. */
export function createHealth(nowMs: () => number = Date.now): HealthStore {
  let lastOkMs = nowMs()
  const store = createStore<Health>({ isStale: false, sinceMs: lastOkMs })
  const turn = (isStale: boolean): void => {
    if (store.current.isStale !== isStale) store.set({ isStale, sinceMs: lastOkMs })
  }
  return {
    get current() {
      return store.current
    },
    ok() {
      lastOkMs = nowMs()
      turn(false)
    },
    failed: () => turn(true),
    subscribe: store.subscribe,
  }
}

export const health: HealthStore = createHealth()
