import type { Handshake } from './connection.ts'
import { isObject, type JsonObject, METHOD_NOT_FOUND } from './json-rpc.ts'
import type { StreamEnd } from './listening.ts'

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
    end: (code) => ({ again: !declined && code !== METHOD_NOT_FOUND && code !== INVALID_PARAMS }),
  }
}
