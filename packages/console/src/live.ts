import type { LiveMessage } from './wire.ts'

/**
 * How changes reach the page: over the socket; by asking every so often, where no socket was ever open;
 * or not at all for the moment, where it was open and is gone.
 */
export type LiveState = 'connecting' | 'open' | 'polling' | 'lost'

/** Opens a socket that calls back for each message and once at its end. Gives the way to end it. */
export type OpenSocket = (hear: (data: unknown) => void, end: () => void) => () => void

export interface LiveOptions {
  readonly open: OpenSocket
  /** Calls back after so many milliseconds; gives the way to call it off. */
  readonly later?: (work: () => void, ms: number) => () => void
  /** From 0 up to 1, so that pages that lost one gateway do not all come back at once. */
  readonly random?: () => number
}

export interface Live {
  readonly state: LiveState
  start(): void
  close(): void
  /** Calls the listener at each change of the state. */
  subscribe(listener: () => void): () => void
  onMessage(listener: (message: LiveMessage) => void): () => void
}

const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5000
const POLLING_RETRY_MS = 30_000

/**
 * Keeps a socket open: one that ends is opened again, at first soon and then less often. It counts as open from its
 * first message, as the gateway promises that nothing is missed after that.
 */
export function createLive({ open, later = afterMs, random = Math.random }: LiveOptions): Live {
  const listeners = new Set<() => void>()
  const hearers = new Set<(message: LiveMessage) => void>()
  let state: LiveState = 'connecting'
  /** Ends the socket there is. */
  let letGo: (() => void) | undefined
  let callOff: (() => void) | undefined
  let wasOpen = false
  let failures = 0

  return {
    get state() {
      return state
    },
    start() {
      if (!letGo && !callOff) connect()
    },
    close() {
      callOff?.()
      callOff = undefined
      letGo?.()
      letGo = undefined
      wasOpen = false
      failures = 0
      turn('connecting')
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onMessage(listener) {
      hearers.add(listener)
      return () => hearers.delete(listener)
    },
  }

  function connect(): void {
    callOff = undefined
    // What comes from a socket that was let go is nobody's.
    const isOwn = (): boolean => letGo === close
    const close = open(
      (data) => isOwn() && hear(parseMessage(data)),
      () => isOwn() && end(),
    )
    letGo = close
  }

  function hear(message: LiveMessage | undefined): void {
    if (!message) return
    wasOpen = true
    failures = 0
    turn('open')
    for (const hearer of hearers) hearer(message)
  }

  function end(): void {
    letGo = undefined
    turn(wasOpen ? 'lost' : 'polling')
    const longest = wasOpen ? LAST_RETRY_MS : POLLING_RETRY_MS
    const delayMs = Math.min(longest, FIRST_RETRY_MS * 2 ** failures++)
    callOff = later(connect, delayMs * (0.75 + random() / 2))
  }

  function turn(to: LiveState): void {
    if (state === to) return
    state = to
    for (const listener of listeners) listener()
  }
}

const TYPES: ReadonlySet<unknown> = new Set<LiveMessage['type']>(['groups', 'audit', 'approval'])

/** Gives the message; `undefined` for a text of a later version that is not known here. */
function parseMessage(data: unknown): LiveMessage | undefined {
  if (typeof data !== 'string') return undefined
  try {
    const message = JSON.parse(data) as LiveMessage | null
    return message && TYPES.has(message.type) ? message : undefined
  } catch {
    return undefined
  }
}

function afterMs(work: () => void, ms: number): () => void {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}
