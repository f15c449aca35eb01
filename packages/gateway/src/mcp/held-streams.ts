import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import type { RequestId } from '@toolgate/mcp'
import { toEvent } from '../model/protocol.ts'
import type { Session } from '../calls/sessions.ts'

/** The request that a held stream belongs to. */
export interface StreamOwner {
  /** Continues the stream on another connection, after the event with this number. */
  attach(response: ServerResponse, after: number): void
  /** Called if the client did not come back, or its session has ended. */
  abandon(reason: Error): void
}

export interface HeldStreamsOptions {
  readonly clock: Clock
  /** How long a stream is kept after its connection broke or its answer was sent. Default 60,000 ms. */
  readonly holdMs?: number
  /** The maximum number of held streams. Default 1,024. */
  readonly maxStreams?: number
  /** The maximum for one session. Default 64. */
  readonly maxOfSession?: number
  /** The maximum number of characters in all held events. Default 16 Mi. */
  readonly maxChars?: number
}

/** The maximum number of lossy events, such as progress, for one stream. Only the latest are kept. */
const MAX_LOSSY_EVENTS = 64
const MAX_LOSSY_CHARS = 256 * 1024
const SWEEP_MS = 1_000
const EVENT_ID = /^([0-9a-f-]{36})_(\d{1,9})$/
const MARK_DIGITS = 7
const MAX_NAMED_ID = 0xffff_ffff
/** A UUID of version 8 (RFC 9562): the id of the request, the mark of the process, and 62 random bits. */
const NAMING_KEY = /^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-/

/**
 * The event streams of requests in sessions, with their latest events. A client whose connection broke continues with
 * `Last-Event-ID` (MCP 2025-11-25, transports, "resumability and redelivery"). Streams are held in this process only.
 *
 * Beyond a limit a stream is not held: it works, but cannot be resumed.
 */
export class HeldStreams {
  readonly #options: Required<HeldStreamsOptions>
  /** Tells the streams of this process from those of others. */
  readonly #mark = randomUUID().replace('-', '').slice(0, MARK_DIGITS)
  /** Oldest first. */
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

  /** Holds the stream of a caller's request in a session. Returns `undefined` if too many are held. */
  open(session: Session, caller: Caller, owner: StreamOwner, id?: RequestId): HeldStream | undefined {
    const { maxStreams, maxOfSession } = this.#options
    if (session.uses.size >= maxOfSession) return undefined
    if (this.#streams.size >= maxStreams && !this.#evict(isFinished)) return undefined
    const stream = new HeldStream(
      this.#toKey(id),
      { session, caller, owner },
      {
        chars: (change) => this.#count(change),
        nowMs: () => this.#options.clock.monotonicMs(),
        end: (ended) => this.#streams.delete(ended.key),
      },
    )
    this.#streams.set(stream.key, stream)
    this.#sweeping ??= setInterval(() => this.sweep(), SWEEP_MS).unref()
    return stream
  }

  /**
   * Continues the stream of an event id on another connection. Returns `false` for an id that is not held, and for a
   * stream of another session or key.
   */
  resume(session: Session, caller: Caller, lastEventId: string, response: ServerResponse): boolean {
    const [, key = '', after = ''] = EVENT_ID.exec(lastEventId) ?? []
    const stream = this.#streams.get(key)
    if (stream?.session !== session || stream.caller !== caller) return false
    stream.owner.attach(response, Number(after))
    return true
  }

  /**
   * Returns the id of the request whose stream another process has held, if the event id names it. The request and its
   * stream are lost with that process.
   */
  lostIn(lastEventId: string): RequestId | undefined {
    const [, key = ''] = EVENT_ID.exec(lastEventId) ?? []
    const [, id = '', ...mark] = NAMING_KEY.exec(key) ?? []
    return id === '' || mark.join('') === this.#mark ? undefined : Number.parseInt(id, 16)
  }

  /** Nearly every client counts its requests, so their ids fit. Streams of other ids have random keys. */
  #toKey(id: RequestId | undefined): string {
    const key = randomUUID()
    if (!Number.isInteger(id) || Number(id) < 0 || Number(id) > MAX_NAMED_ID) return key
    const named = Number(id).toString(16).padStart(8, '0')
    return `${named}-${this.#mark.slice(0, 4)}-8${this.#mark.slice(4)}${key.slice(18)}`
  }

  /** Ends the streams whose clients did not come back in time. */
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

  /** Ends a stream of the user who holds the most, so that nobody can displace the streams of others. */
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

interface StreamBook {
  chars(change: number): void
  nowMs(): number
  end(stream: HeldStream): void
}

/** One event stream, with the events that its client may have missed. */
export class HeldStream {
  readonly key: string
  readonly session: Session
  /** The caller, with the key of the request. */
  readonly caller: Caller
  readonly owner: StreamOwner
  /** When the connection broke or the answer was sent. */
  waitsSinceMs: number | undefined
  isFinished = false
  /** The number of characters in its held events. */
  chars = 0
  isHeld = true
  readonly #book: StreamBook
  readonly #events = new Map<number, { readonly text: string; readonly isLossy: boolean }>()
  #number = 0
  #lossyChars = 0
  readonly #endOfSession = (): void => this.end()

  constructor(
    key: string,
    { session, caller, owner }: Pick<HeldStream, 'session' | 'caller' | 'owner'>,
    book: StreamBook,
  ) {
    this.key = key
    this.session = session
    this.caller = caller
    this.owner = owner
    this.#book = book
    session.uses.add(this.#endOfSession)
  }

  /** Returns an event without a message, which gives the client an id to resume from. */
  prime(retryMs: number): string {
    return `id: ${this.key}_0\nretry: ${retryMs}\ndata: \n\n`
  }

  /** Adds a message. Returns the event and its number. */
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

  /** Removes an event that is no longer needed, such as a question that was answered. */
  forget(number: number): void {
    const event = this.#events.get(number)
    if (!event || !this.#events.delete(number)) return
    if (event.isLossy) this.#lossyChars -= event.text.length
    this.chars -= event.text.length
    this.#book.chars(-event.text.length)
  }

  /** Returns the held events after this number. */
  after(number: number): readonly string[] {
    return [...this.#events].flatMap(([own, { text }]) => (own > number ? [text] : []))
  }

  /** Called when the connection has broken or was replaced. */
  setConnected(isConnected: boolean): void {
    if (!this.isFinished) this.waitsSinceMs = isConnected ? undefined : this.#book.nowMs()
  }

  /** Called when the answer, the last event, was sent. */
  finish(): void {
    this.isFinished = true
    this.waitsSinceMs = this.#book.nowMs()
  }

  /** Removes the stream. If its client is not connected, its request is cancelled. */
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
