import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import { toEvent } from '../model/protocol.ts'
import type { Session } from '../calls/sessions.ts'

/** The request whose stream is held. */
export interface StreamOwner {
  /** Continues the stream on another connection, after the event of that number. */
  attach(response: ServerResponse, after: number): void
  /** The client did not come back, or its session has ended. */
  abandon(reason: Error): void
}

export interface HeldStreamsOptions {
  readonly clock: Clock
  /** How long a stream is held after its connection broke or its answer was sent. Default 60,000 ms. */
  readonly holdMs?: number
  /** Default 1,024. */
  readonly maxStreams?: number
  /** Per session. Default 64. */
  readonly maxOfSession?: number
  /** The characters of all events that are held. Default 16 Mi. */
  readonly maxChars?: number
}

/** The events of one stream that may be lost, such as progress. Of more, the latest are held. */
const MAX_LOSSY_EVENTS = 64
const MAX_LOSSY_CHARS = 256 * 1024
const SWEEP_MS = 1_000
const EVENT_ID = /^([0-9a-f-]{36})_(\d{1,9})$/

/**
 * The event streams of requests in sessions, with their latest events: a client whose connection broke continues with
 * `Last-Event-ID` (MCP 2025-11-25, transports, "resumability and redelivery"). They are in this process alone.
 *
 * Beyond a bound a stream is not held: it works as before, but cannot be resumed.
 */
export class HeldStreams {
  readonly #options: Required<HeldStreamsOptions>
  /** In the order in which they began. */
  readonly #streams = new Map<string, HeldStream>()
  #chars = 0
  #sweeping: NodeJS.Timeout | undefined

  constructor({
    clock,
    holdMs = 60_000,
    maxStreams = 1024,
    maxOfSession = 64,
    maxChars = 16 * 1024 * 1024,
  }: HeldStreamsOptions) {
    this.#options = { clock, holdMs, maxStreams, maxOfSession, maxChars }
  }

  get count(): number {
    return this.#streams.size
  }

  get chars(): number {
    return this.#chars
  }

  /** Holds a stream of a caller in a session. Returns `undefined` if too many are held. */
  open(session: Session, caller: Caller, owner: StreamOwner): HeldStream | undefined {
    const { maxStreams, maxOfSession } = this.#options
    if (session.uses.size >= maxOfSession) return undefined
    if (this.#streams.size >= maxStreams && !this.#evict(isFinished)) return undefined
    const stream = new HeldStream(session, caller, owner, {
      chars: (change) => this.#count(change),
      nowMs: () => this.#options.clock.monotonicMs(),
      end: (ended) => this.#streams.delete(ended.key),
    })
    this.#streams.set(stream.key, stream)
    this.#sweeping ??= setInterval(() => this.sweep(), SWEEP_MS).unref()
    return stream
  }

  /**
   * Continues the stream that an event id names, on another connection. Returns `false` for every id that is not held,
   * also for the stream of another session or key.
   */
  resume(session: Session, caller: Caller, lastEventId: string, response: ServerResponse): boolean {
    const [, key = '', after = ''] = EVENT_ID.exec(lastEventId) ?? []
    const stream = this.#streams.get(key)
    if (stream?.session !== session || stream.caller !== caller) return false
    stream.owner.attach(response, Number(after))
    return true
  }

  /** Ends the streams that have waited too long for their clients. */
  sweep(): void {
    const before = this.#options.clock.monotonicMs() - this.#options.holdMs
    for (const stream of this.#streams.values())
      if (stream.waitsSinceMs !== undefined && stream.waitsSinceMs <= before) stream.end()
    if (this.#streams.size > 0) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }

  #count(change: number): void {
    this.#chars += change
    if (change < 0) return
    while (this.#chars > this.#options.maxChars) if (!this.#makeRoom()) return
  }

  /** Ends a stream of the user who holds the most: nobody can push out the streams of others. */
  #makeRoom(): boolean {
    const held = new Map<string, number>()
    for (const { session, chars } of this.#streams.values())
      held.set(session.owner, (held.get(session.owner) ?? 0) + chars)
    const most = Math.max(...held.values())
    const isOwn = ({ session: { owner } }: HeldStream) => held.get(owner) === most
    return (
      this.#evict((stream) => isOwn(stream) && isFinished(stream)) ||
      this.#evict((stream) => isOwn(stream) && isWaiting(stream)) ||
      this.#evict(isOwn)
    )
  }

  /** Ends the oldest stream of a kind. */
  #evict(isKind: (stream: HeldStream) => boolean): boolean {
    const stream = this.#streams.values().find(isKind)
    stream?.end()
    return stream !== undefined
  }
}

function isFinished(stream: HeldStream): boolean {
  return stream.isFinished
}

function isWaiting(stream: HeldStream): boolean {
  return stream.waitsSinceMs !== undefined
}

interface HeldEvent {
  readonly text: string
  readonly isLossy: boolean
}

interface StreamBook {
  chars(change: number): void
  nowMs(): number
  end(stream: HeldStream): void
}

/** One event stream, with the events that its client may have missed. */
export class HeldStream {
  readonly key: string = randomUUID()
  readonly session: Session
  /** With the key of the request. */
  readonly caller: Caller
  readonly owner: StreamOwner
  /** When its connection broke or its answer was sent. */
  waitsSinceMs: number | undefined
  isFinished = false
  /** Of its held events. */
  chars = 0
  isHeld = true
  readonly #book: StreamBook
  readonly #events = new Map<number, HeldEvent>()
  #number = 0
  #lossyChars = 0
  readonly #endOfSession = (): void => this.end()

  constructor(session: Session, caller: Caller, owner: StreamOwner, book: StreamBook) {
    this.session = session
    this.caller = caller
    this.owner = owner
    this.#book = book
    session.uses.add(this.#endOfSession)
  }

  /** Returns the event that only gives the client an id to resume from. */
  prime(retryMs: number): string {
    return `id: ${this.key}_0\nretry: ${retryMs}\ndata: \n\n`
  }

  /** Adds a message. Returns the number of its event, and the event as it is sent. */
  add(text: string, isLossy: boolean): { readonly number: number; readonly event: string } {
    const number = ++this.#number
    const event = `id: ${this.key}_${number}\n${toEvent(text)}`
    if (!this.isHeld) return { number, event: toEvent(text) }
    this.#events.set(number, { text: event, isLossy })
    if (isLossy) this.#lossyChars += event.length
    this.chars += event.length
    this.#book.chars(event.length)
    while (this.#lossyChars > MAX_LOSSY_CHARS || this.#events.size > MAX_LOSSY_EVENTS) if (!this.#dropLossy()) break
    return { number, event }
  }

  /** Forgets an event that no longer matters, such as a question that was answered. */
  forget(number: number): void {
    const event = this.#events.get(number)
    if (!event || !this.#events.delete(number)) return
    if (event.isLossy) this.#lossyChars -= event.text.length
    this.chars -= event.text.length
    this.#book.chars(-event.text.length)
  }

  /** Returns the held events after that number. */
  after(number: number): readonly string[] {
    return [...this.#events].flatMap(([own, { text }]) => (own > number ? [text] : []))
  }

  /** A connection broke, or there is another one. */
  setConnected(isConnected: boolean): void {
    if (!this.isFinished) this.waitsSinceMs = isConnected ? undefined : this.#book.nowMs()
  }

  /** The answer was the last event. */
  finish(): void {
    this.isFinished = true
    this.waitsSinceMs = this.#book.nowMs()
  }

  /** Forgets the stream. A request whose client is not connected is given up. */
  end(): void {
    if (!this.isHeld) return
    this.isHeld = false
    this.session.uses.delete(this.#endOfSession)
    this.#book.end(this)
    for (const number of this.#events.keys()) this.forget(number)
    if (isWaiting(this) && !this.isFinished) this.owner.abandon(new Error('the client went away and did not come back'))
  }

  #dropLossy(): boolean {
    for (const [number, { isLossy }] of this.#events)
      if (isLossy) {
        this.forget(number)
        return true
      }
    return false
  }
}
