import type { Approval } from './wire.ts'

/** A rejection that is not sent yet. */
export interface HeldRejection {
  readonly approval: Approval
  readonly reason: string
  /** When it is sent, in wall-clock milliseconds. */
  readonly sentAtMs: number
}

export interface HeldRejectionsOptions {
  /** How long a person can undo a rejection. */
  readonly holdMs: number
  readonly send: (held: HeldRejection) => void
  readonly nowMs?: () => number
  /** Calls back after a delay. Returns the function that cancels it. */
  readonly later?: (work: () => void, ms: number) => () => void
}

/** Rejections that their person can still undo, by the id of the approval. */
export interface HeldRejections {
  readonly current: ReadonlyMap<string, HeldRejection>
  hold(approval: Approval, reason: string): void
  undo(id: string): void
  /** Sends all of them now, because the page is about to go. */
  sendAll(): void
  subscribe(listener: () => void): () => void
}

/**
 * Keeps each rejection back for a moment, so that it can be undone: nobody has been told yet. Afterwards it is final, since
 * the agent may have gone on.
 */
export function createHeldRejections(options: HeldRejectionsOptions): HeldRejections {
  const { holdMs, send, nowMs = Date.now, later = afterMs } = options
  const listeners = new Set<() => void>()
  const cancels = new Map<string, () => void>()
  let current: ReadonlyMap<string, HeldRejection> = new Map()

  return {
    get current() {
      return current
    },
    hold(approval, reason) {
      const { id } = approval
      if (current.has(id)) return
      set(new Map(current).set(id, { approval, reason, sentAtMs: nowMs() + holdMs }))
      cancels.set(
        id,
        later(() => sendOne(id), holdMs),
      )
    },
    undo: (id) => void take(id),
    sendAll() {
      for (const id of current.keys()) sendOne(id)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  function sendOne(id: string): void {
    const held = take(id)
    if (held) send(held)
  }

  function take(id: string): HeldRejection | undefined {
    const held = current.get(id)
    cancels.get(id)?.()
    cancels.delete(id)
    const others = new Map(current)
    if (others.delete(id)) set(others)
    return held
  }

  function set(to: ReadonlyMap<string, HeldRejection>): void {
    current = to
    for (const listener of listeners) listener()
  }
}

function afterMs(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
