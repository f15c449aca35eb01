import { setTimeout as sleep } from 'node:timers/promises'

/** Before the first reopening, where the server names no time. It doubles each time. */
export const REOPEN_MS = 1_000
const MIN_REOPEN_MS = 100
const MAX_REOPEN_MS = 30_000

/** How a stream of announcements ended. */
export interface StreamEnd {
  /** Whether it is worth opening again. */
  readonly again: boolean
  /** How long the server asks to wait before that. */
  readonly retryMs?: number | undefined
}

export interface ListeningOptions {
  /** Opens the stream once, calls `onOpen` when it announces changes, and resolves at its end. Does not reject. */
  open(signal: AbortSignal, onOpen: () => void): Promise<StreamEnd>
  /** Announcements between two streams are lost. */
  onGap(): void
}

export interface Listening {
  /** Resolves when the first stream is open or has ended. */
  readonly begun: Promise<void>
  stop(): void
}

/** Keeps a stream of announcements open: a stream that ends is opened again, with growing delays. */
export function keepListening({ open, onGap }: ListeningOptions): Listening {
  const stopping = new AbortController()
  const { promise: begun, resolve: onBegun } = Promise.withResolvers<void>()
  let streams = 0
  void listen()
  return { begun, stop: () => stopping.abort() }

  async function listen(): Promise<void> {
    for (let waitMs = REOPEN_MS; !stopping.signal.aborted; waitMs *= 2) {
      const openedMs = performance.now()
      const end = await open(stopping.signal, onOpen)
      onBegun()
      if (stopping.signal.aborted || !end.again) return
      if (performance.now() - openedMs > MAX_REOPEN_MS) waitMs = REOPEN_MS
      // The wish of a server whose streams end again and again does not stop the growth.
      const pauseMs = waitMs === REOPEN_MS ? (end.retryMs ?? waitMs) : Math.max(end.retryMs ?? 0, waitMs)
      await sleep(reopenMs(pauseMs), undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  function onOpen(): void {
    onBegun()
    if (streams++ > 0) onGap()
  }
}

/** Returns a delay within the bounds for opening a stream again. */
export function reopenMs(ms: number): number {
  return Math.min(Math.max(ms, MIN_REOPEN_MS), MAX_REOPEN_MS)
}
