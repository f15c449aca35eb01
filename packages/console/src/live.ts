import type { LiveMessage } from './wire.ts'
import { parseDigits } from './digits.ts'
import { afterMs, createListeners, createStore } from './store.ts'

/**
 * How changes reach the page: over the socket (`open`); by polling, if the socket never opened; or not at all, if it was
 * open and has closed (`lost`).
 */
export type LiveState = 'connecting' | 'open' | 'polling' | 'lost'

/** Opens a socket, with callbacks for each message and for its end. Returns a function that closes it. */
type OpenSocket = (onMessage: (data: unknown) => void, onEnd: () => void) => () => void

interface LiveOptions {
  readonly open: OpenSocket
  /** Runs work after a delay. Returns a function that cancels it. */
  readonly later?: (work: () => void, ms: number) => () => void
  /** Returns 0 to 1. It spreads the retries of many pages that lost the same gateway. */
  readonly random?: () => number
}

const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5000
const POLLING_RETRY_MS = 30_000

/**
 * Keeps a socket open. It reopens a closed socket, first soon and then less often. The state is `open` from the first
 * message, because the gateway sends every change after that.
 */
export class Live {
  readonly #options: Required<LiveOptions>
  readonly #store = createStore<LiveState>('connecting')
  readonly #messages = createListeners<LiveMessage>()
  /** Calls the listener when the state changes. */
  readonly subscribe = this.#store.subscribe
  readonly onMessage = this.#messages.add
  /** Closes the current socket. */
  #closeSocket: (() => void) | undefined
  #cancelRetry: (() => void) | undefined
  #wasOpen = false
  #failures = 0

  constructor({ open, later = afterMs, random = Math.random }: LiveOptions) {
    this.#options = { open, later, random }
  }

  get current(): LiveState {
    return this.#store.current
  }

  start(): void {
    if (!this.#closeSocket && !this.#cancelRetry) this.#connect()
  }

  close(): void {
    this.#cancelRetry?.()
    this.#cancelRetry = undefined
    this.#closeSocket?.()
    this.#closeSocket = undefined
    this.#wasOpen = false
    this.#failures = 0
    this.#store.set('connecting')
  }

  #connect(): void {
    this.#cancelRetry = undefined
    // Messages of a closed socket are ignored.
    const isOwn = (): boolean => this.#closeSocket === close
    const close = this.#options.open(
      (data) => isOwn() && this.#receive(parseMessage(data)),
      () => isOwn() && this.#end(),
    )
    this.#closeSocket = close
  }

  #receive(message: LiveMessage | undefined): void {
    if (!message) return
    this.#wasOpen = true
    this.#failures = 0
    this.#store.set('open')
    this.#messages.call(message)
  }

  #end(): void {
    this.#closeSocket = undefined
    this.#store.set(this.#wasOpen ? 'lost' : 'polling')
    const longest = this.#wasOpen ? LAST_RETRY_MS : POLLING_RETRY_MS
    const delayMs = Math.min(longest, FIRST_RETRY_MS * 2 ** this.#failures++)
    this.#cancelRetry = this.#options.later(() => this.#connect(), delayMs * (0.75 + this.#options.random() / 2))
  }
}

const TYPES: ReadonlySet<unknown> = new Set<LiveMessage['type']>(['groups', 'audit', 'approval'])

/** Returns the message, or `undefined` if its type is unknown. */
function parseMessage(data: unknown): LiveMessage | undefined {
  if (typeof data !== 'string') return undefined
  try {
    const message = parseDigits(data) as LiveMessage | null
    return message && TYPES.has(message.type) ? message : undefined
  } catch {
    return undefined
  }
}
