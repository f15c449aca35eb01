import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '@toolgate/core/internal'
import { RPC_CODES } from '@toolgate/mcp'
import type { Handshake } from './connection.ts'

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

interface ListeningOptions {
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

/** The request of MCP 2026-07-28 whose answer is a stream of announcements. */
export const LISTEN = 'subscriptions/listen'
export const LISTEN_PARAMS: JsonObject = { notifications: { toolsListChanged: true } }
/** How long a server that starts may take to acknowledge. After that its list is read without waiting. */
export const ACKNOWLEDGE_MS = 500

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const INVALID_PARAMS = -32_602

/** Returns `true` for a server that announces changes of its tools. */
export function announcesChanges({ capabilities }: Pick<Handshake, 'capabilities'>): boolean {
  return isObject(capabilities['tools']) && capabilities['tools']['listChanged'] === true
}

/** One subscription to changes of a server's tools. */
export interface Subscription {
  onNotification(method: string, params: JsonObject): void
  /** Returns how the subscription ended; `code` is that of the JSON-RPC error which ended it. */
  end(code?: number): StreamEnd
}

export function createSubscription(onOpen: () => void): Subscription {
  let declined = false
  return {
    onNotification(method, { notifications }) {
      if (method !== ACKNOWLEDGED) return
      declined = !isObject(notifications) || notifications['toolsListChanged'] !== true
      if (!declined) onOpen()
    },
    // A server that knows no such request, or announces no tools, answers the same next time.
    end: (code) => ({ again: !declined && code !== RPC_CODES.methodNotFound && code !== INVALID_PARAMS }),
  }
}
