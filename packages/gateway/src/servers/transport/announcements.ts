import { isObject, type JsonObject } from '@toolgate/values/json'
import { RPC_CODES } from '@toolgate/mcp'
import type { Handshake } from './connection.ts'
import { reopenDelayMs } from './lines.ts'
import { type Offer, OFFERS } from '../../model/upstream.ts'

/** How a stream of announcements ended. */
export interface StreamEnd {
  /** Whether to reopen the stream. */
  readonly again: boolean
  /** The delay that the server requests. */
  readonly retryMs?: number | undefined
}

interface ListeningOptions {
  /**
   * Opens the stream. Calls `onOpen` when the server starts to announce changes, and resolves when the stream ends.
   * Never rejects.
   */
  open(signal: AbortSignal, onOpen: () => void): Promise<StreamEnd>
  /** Called after each reopening, because announcements between two streams are lost. */
  onGap(): void
}

export interface Listening {
  /** Resolves when the first stream is open or has ended. */
  readonly begun: Promise<void>
  stop(): void
}

/** The first delay. Changes during it are read afterwards, so it limits how late they are seen. */
const FIRST_WAIT_MS = 250

/**
 * Keeps a stream of announcements open. A stream that ends is reopened: soon if it was open for long, as proxies close
 * idle streams, and otherwise with increasing delays.
 */
export function keepListening({ open, onGap }: ListeningOptions): Listening {
  const stopping = new AbortController()
  const { promise: begun, resolve: onBegun } = Promise.withResolvers<void>()
  let streams = 0
  void listen()
  return { begun, stop: () => stopping.abort() }

  async function listen(): Promise<void> {
    for (let waitMs = FIRST_WAIT_MS; !stopping.signal.aborted; waitMs *= 2) {
      const openedMs = performance.now()
      const end = await open(stopping.signal, onOpen)
      onBegun()
      if (stopping.signal.aborted || !end.again) return
      if (performance.now() - openedMs > LONG_FACTOR * waitMs) waitMs = FIRST_WAIT_MS
      // A server whose streams end repeatedly cannot shorten the delay.
      const pauseMs = waitMs === FIRST_WAIT_MS ? (end.retryMs ?? waitMs) : Math.max(end.retryMs ?? 0, waitMs)
      await pause(reopenDelayMs(pauseMs))
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, ms)
      stopping.signal.addEventListener('abort', end, { once: true })
      function end(): void {
        clearTimeout(timer)
        stopping.signal.removeEventListener('abort', end)
        resolve()
      }
    })
  }

  function onOpen(): void {
    onBegun()
    if (streams++ > 0) onGap()
  }
}

/** A stream that was open this many times as long as the delay before it did not fail. */
const LONG_FACTOR = 4

/** The request of MCP 2026-07-28 whose answer is a stream of announcements. */
export const LISTEN = 'subscriptions/listen'
/** How long to wait for the acknowledgement before the first list is read anyway. */
export const ACKNOWLEDGE_MS = 500

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const INVALID_PARAMS = -32_602

/** The kinds of lists, by the notifications that announce their changes. */
const LIST_CHANGES: ReadonlyMap<string, Offer> = new Map(
  OFFERS.map((offer) => [`notifications/${offer}/list_changed`, offer]),
)

/** Returns the kind of list whose change a notification announces. */
export function changedList(method: string): Offer | undefined {
  return LIST_CHANGES.get(method)
}

/**
 * Returns the wanted kinds of lists whose changes to subscribe to, and whether the server declares one of them. A
 * server of MCP 2026-07-28 is asked for all kinds, since its answer states which ones it announces.
 */
export function announcedLists(
  { era, capabilities }: Pick<Handshake, 'era' | 'capabilities'>,
  offers: readonly Offer[],
): { readonly lists: readonly Offer[]; readonly isDeclared: boolean } {
  const had = offers.filter((offer) => isObject(capabilities[offer]))
  const declared = had.filter((offer) => (capabilities[offer] as JsonObject)['listChanged'] === true)
  return { lists: era === 'modern' ? had : declared, isDeclared: declared.length > 0 }
}

/** The notifications that a `subscriptions/listen` requests. */
export interface SubscriptionFilter {
  readonly toolsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

export function listenTo(lists: readonly Offer[], uris: readonly string[] = []): SubscriptionFilter {
  const flags = Object.fromEntries(lists.map((offer) => [`${offer}ListChanged`, true]))
  return uris.length === 0 ? flags : { ...flags, resourceSubscriptions: uris }
}

/** The notification that a resource has changed. */
export const RESOURCE_UPDATED = 'notifications/resources/updated'

/** One subscription to announcements of a server. */
export interface Subscription {
  onNotification(method: string, params: JsonObject): void
  /** Returns how the subscription ended. `code` is the JSON-RPC error that ended it, if any. */
  end(code?: number): StreamEnd
}

/** Returns a subscription that is open once the server grants a part of it. An undeclared kind is tried once. */
export function createSubscription(filter: SubscriptionFilter, isDeclared: boolean, onOpen: () => void): Subscription {
  let declined = !isDeclared
  return {
    onNotification(method, { notifications }) {
      if (method !== ACKNOWLEDGED) return
      declined = !isObject(notifications) || !Object.keys(filter).some((field) => isGranted(notifications[field]))
      if (!declined) onOpen()
    },
    // A server that lacks this request, or such announcements, would give the same answer next time.
    end: (code) => ({ again: !declined && code !== RPC_CODES.methodNotFound && code !== INVALID_PARAMS }),
  }
}

function isGranted(field: unknown): boolean {
  return field === true || (Array.isArray(field) && field.length > 0)
}
