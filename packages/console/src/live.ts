import type { LiveMessage } from './wire.ts'
import { parseDigits } from './digits.ts'

/**
 * How changes reach the page: over the socket (`open`); by polling, if the socket never opened; or not at all, if it was
 * open and has closed (`lost`).
 */
export type LiveState = 'connecting' | 'open' | 'polling' | 'lost'

/** Opens a socket, with a callback for each message and one for its end. Returns the function that closes it. */
export type OpenSocket = (onMessage: (data: unknown) => void, onEnd: () => void) => () => void

export interface LiveOptions {
  readonly open: OpenSocket
  /** Calls back after a delay. Returns the function that cancels it. */
  readonly later?: (work: () => void, ms: number) => () => void
  /** Returns 0 to 1. Spreads the retries of many pages that lost one gateway. */
  readonly random?: () => number
}

export interface Live {
  readonly state: LiveState
  start(): void
  close(): void
  /** Calls the listener when the state changes. */
  subscribe(listener: () => void): () => void
  onMessage(listener: (message: LiveMessage) => void): () => void
}

const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5000
const POLLING_RETRY_MS = 30_000

/**
 * Keeps a socket open: opens it again when it ends, at first soon and then less often. The state is `open` from the first
 * message, since the gateway sends every change after that.
 */
export function createLive({ open, later = afterMs, random = Math.random }: LiveOptions): Live {
  const listeners = new Set<() => void>()
  const messageListeners = new Set<(message: LiveMessage) => void>()
  let state: LiveState = 'connecting'
  /** Closes the current socket. */
  let closeSocket: (() => void) | undefined
  let cancelRetry: (() => void) | undefined
  let wasOpen = false
  let failures = 0

  return {
    get state() {
      return state
    },
    start() {
      if (!closeSocket && !cancelRetry) connect()
    },
    close() {
      cancelRetry?.()
      cancelRetry = undefined
      closeSocket?.()
      closeSocket = undefined
      wasOpen = false
      failures = 0
      turn('connecting')
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onMessage(listener) {
      messageListeners.add(listener)
      return () => messageListeners.delete(listener)
    },
  }

  function connect(): void {
    cancelRetry = undefined
    // Messages of a closed socket are ignored.
    const isOwn = (): boolean => closeSocket === close
    const close = open(
      (data) => isOwn() && receive(parseMessage(data)),
      () => isOwn() && end(),
    )
    closeSocket = close
  }

  function receive(message: LiveMessage | undefined): void {
    if (!message) return
    wasOpen = true
    failures = 0
    turn('open')
    for (const listener of messageListeners) listener(message)
  }

  function end(): void {
    closeSocket = undefined
    turn(wasOpen ? 'lost' : 'polling')
    const longest = wasOpen ? LAST_RETRY_MS : POLLING_RETRY_MS
    const delayMs = Math.min(longest, FIRST_RETRY_MS * 2 ** failures++)
    cancelRetry = later(connect, delayMs * (0.75 + random() / 2))
  }

  function turn(to: LiveState): void {
    if (state === to) return
    state = to
    for (const listener of listeners) listener()
  }
}

const TYPES: ReadonlySet<unknown> = new Set<LiveMessage['type']>(['groups', 'audit', 'approval'])

/** Returns the message; `undefined` for one of an unknown type. */
function parseMessage(data: unknown): LiveMessage | undefined {
  if (typeof data !== 'string') return undefined
  try {
    const message = parseDigits(data) as LiveMessage | null
    return message && TYPES.has(message.type) ? message : undefined
  } catch {
    return undefined
  }
}

function afterMs(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
