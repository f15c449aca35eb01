import { afterMs, createStore } from './store.ts'
import type { Approval } from './wire.ts'

/** A rejection that is not sent yet. */
export interface HeldRejection {
  readonly approval: Approval
  readonly reason: string
  /** The time at which it is sent, in wall-clock milliseconds. */
  readonly sentAtMs: number
}

export interface HeldRejectionsOptions {
  /** How long a person can undo a rejection. */
  readonly holdMs: number
  readonly send: (held: HeldRejection) => void
  readonly nowMs?: () => number
  /** Runs work after a delay. Returns a function that cancels it. */
  readonly later?: (work: () => void, ms: number) => () => void
}

/** Rejections that can still be undone, by approval id. */
export interface HeldRejections {
  readonly current: ReadonlyMap<string, HeldRejection>
  hold(approval: Approval, reason: string): void
  undo(id: string): void
  /** Sends all rejections now, because the page is about to close. */
  sendAll(): void
  subscribe(listener: () => void): () => void
}

/**
 * Holds each rejection for a moment before it is sent, so that it can be undone. After that it is final, because the
 * agent may have continued.
 */
export function createHeldRejections(options: HeldRejectionsOptions): HeldRejections {
  const { holdMs, send, nowMs = Date.now, later = afterMs } = options
  const store = createStore<ReadonlyMap<string, HeldRejection>>(new Map())
  const cancels = new Map<string, () => void>()

  return {
    get current() {
      return store.current
    },
    hold(approval, reason) {
      const { id } = approval
      if (store.current.has(id)) return
      store.set(new Map(store.current).set(id, { approval, reason, sentAtMs: nowMs() + holdMs }))
      const cancel = later(() => sendOne(id), holdMs)
      cancels.set(id, cancel)
    },
    undo: (id) => void take(id),
    sendAll() {
      for (const id of store.current.keys()) sendOne(id)
    },
    subscribe: store.subscribe,
  }

  function sendOne(id: string): void {
    const held = take(id)
    if (held) send(held)
  }

  function take(id: string): HeldRejection | undefined {
    const held = store.current.get(id)
    cancels.get(id)?.()
    cancels.delete(id)
    const others = new Map(store.current)
    if (others.delete(id)) store.set(others)
    return held
  }
}
