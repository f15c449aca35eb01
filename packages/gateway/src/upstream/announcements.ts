import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '@toolgate/core/internal'
import { RPC_CODES } from '@toolgate/mcp'
import type { Handshake } from './connection.ts'
import { FIRST_REOPEN_MS, MAX_REOPEN_MS, reopenDelayMs } from './lines.ts'

/** How a stream of announcements ended. */
export interface StreamEnd {
  /** Whether to open it again. */
  readonly again: boolean
  /** The delay that the server asks for. */
  readonly retryMs?: number | undefined
}

interface ListeningOptions {
  /** Opens the stream, calls `onOpen` when the server starts to announce changes, and resolves at the end. Never rejects. */
  open(signal: AbortSignal, onOpen: () => void): Promise<StreamEnd>
  /** Called after each reopening: announcements between two streams are lost. */
  onGap(): void
}

export interface Listening {
  /** Resolves when the first stream is open or has ended. */
  readonly begun: Promise<void>
  stop(): void
}

/** Keeps a stream of announcements open. A stream that ends is opened again, with growing delays. */
export function keepListening({ open, onGap }: ListeningOptions): Listening {
  const stopping = new AbortController()
  const { promise: begun, resolve: onBegun } = Promise.withResolvers<void>()
  let streams = 0
  void listen()
  return { begun, stop: () => stopping.abort() }

  async function listen(): Promise<void> {
    for (let waitMs = FIRST_REOPEN_MS; !stopping.signal.aborted; waitMs *= 2) {
      const openedMs = performance.now()
      const end = await open(stopping.signal, onOpen)
      onBegun()
      if (stopping.signal.aborted || !end.again) return
      if (performance.now() - openedMs > MAX_REOPEN_MS) waitMs = FIRST_REOPEN_MS
      // A server whose streams end again and again cannot shorten the delay.
      const pauseMs = waitMs === FIRST_REOPEN_MS ? (end.retryMs ?? waitMs) : Math.max(end.retryMs ?? 0, waitMs)
      await sleep(reopenDelayMs(pauseMs), undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  function onOpen(): void {
    onBegun()
    if (streams++ > 0) onGap()
  }
}

/** The request of MCP 2026-07-28 whose answer is a stream of announcements. */
export const LISTEN = 'subscriptions/listen'
export const LISTEN_PARAMS: JsonObject = { notifications: { toolsListChanged: true } }
/** How long to wait for the acknowledgement before the first list is read anyway. */
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
  /** Returns how the subscription ended. `code` is the JSON-RPC error that ended it, if any. */
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
    // A server without this request, or without announcements of tools, gives the same answer next time.
    end: (code) => ({ again: !declined && code !== RPC_CODES.methodNotFound && code !== INVALID_PARAMS }),
  }
}
