import type { ServerResponse } from 'node:http'
import {
  type Canceller,
  type Cancelling,
  createCanceller,
  createDeadlines,
  type Deadlines,
  type Timed,
  type Watched,
} from '@toolgate/values'
import { toJsonText } from '@toolgate/values/json'
import type { RequestId } from '@toolgate/mcp'
import { isLarge } from '../util/next-turn.ts'
import type { AnswerForm } from './accepts.ts'
import type { HeldStream, StreamOwner } from './held-streams.ts'
import { sendEvent, sendJson, toEvent } from '../model/protocol.ts'

/** A client with more unread bytes than this is treated as not reading. */
const MAX_UNREAD_BYTES = 1024 * 1024
/** How soon a client should come back after its connection broke. */
const RETRY_MS = 1_000
/** The times of silence. Proxies and clients close connections that are silent for long. */
export interface KeepAlive {
  readonly deadlines: Deadlines
  /** After this time a silent response becomes a stream, in milliseconds. */
  readonly openMs: number
  /** After each of these times a stream sends a sign of life, in milliseconds. */
  readonly commentMs: number
}

/** Returns the times of silence of all responses. They share a few timers. */
export function createKeepAlive({ openMs = 10_000, commentMs = 15_000 } = {}): KeepAlive {
  return { deadlines: createDeadlines(() => performance.now(), { isBackground: true }), openMs, commentMs }
}

interface AnswerStreamOptions {
  readonly keepAlive: KeepAlive
  /** The form in which the client takes the answer. Default: any. */
  readonly form?: AnswerForm
  /** Holds the stream once it has begun, so that its client can resume it. */
  readonly hold?: ((owner: StreamOwner) => HeldStream | undefined) | undefined
  /** Whether the stream begins with an event that only has an id (since 2025-11-25). */
  readonly isPrimed?: boolean
}

/**
 * The response to one request: JSON, or an event stream once something is sent before the answer. A client that takes
 * only JSON gets nothing before its answer. A client that takes only event streams gets its answer as an event.
 *
 * A client may resume a held stream, so the end of its connection cancels nothing. Any other client that disconnects
 * can never get its answer, so its request is cancelled.
 */
export class AnswerStream implements StreamOwner, Timed {
  readonly #options: AnswerStreamOptions
  #response: ServerResponse | undefined
  #held: HeldStream | undefined
  #gone: Canceller | undefined
  #silence: Watched | undefined
  #isStream = false

  constructor(response: ServerResponse, options: AnswerStreamOptions) {
    this.#response = response
    this.#options = options
  }

  /** Whether something was sent, so that the answer must be an event too. */
  get isStream(): boolean {
    return this.#isStream
  }

  /** Whether the client takes messages before the answer. */
  get canStream(): boolean {
    return this.#options.form !== 'json'
  }

  /** Aborts if the client disconnects before its answer and cannot resume. */
  get gone(): Cancelling {
    if (this.#gone) return this.#gone
    this.#gone = createCanceller()
    if (this.canStream) this.#waitFor(this.#options.keepAlive.openMs)
    if (this.#response) this.#follow(this.#response)
    return this.#gone
  }

  /** Sends a message that may be lost. It turns the response into an event stream, which most calls never need. */
  notify(message: object): void {
    // A client that does not read must not use up memory.
    if (!this.canStream || (this.#response && this.#response.writableLength > MAX_UNREAD_BYTES)) return
    this.#send(toJsonText(message), true)
  }

  /** Sends a message. Returns the function that removes it; `undefined` if the client is gone. */
  send(message: object): (() => void) | undefined {
    const number = this.canStream ? this.#send(toJsonText(message), false) : undefined
    return number === undefined ? undefined : () => this.#held?.forget(number)
  }

  /** Sends the answer: the text of a JSON-RPC message. */
  end(text: string, status?: number): void {
    this.#rest()
    if (this.#isStream) {
      this.#send(text, false)
      this.#held?.finish()
      this.#response?.end()
      return
    }
    const response = this.#response
    if (!response) return
    const send = this.#options.form === 'stream' ? sendEvent : sendJson
    if (!isLarge(text)) return send(response, text, status)
    // Serializing a large text takes time. From here on, nothing may be sent before the answer.
    this.#response = undefined
    setImmediate(() => send(response, text, status))
  }

  /** Sends a result whose bytes are cached. */
  endWith(id: RequestId, result: Buffer): void {
    const response = this.#response
    const head = `{"jsonrpc":"2.0","id":${toJsonText(id)},"result":`
    if (this.#isStream || !response || this.#options.form === 'stream') return this.end(`${head}${result.toString()}}`)
    this.#rest()
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(head) + result.length + 1,
    })
    response.cork()
    response.write(head)
    response.write(result)
    response.end('}')
  }

  /** Ends a request that failed, without sending an answer. */
  drop(): void {
    this.#rest()
    this.#held?.end()
  }

  attach(response: ServerResponse, after: number): void {
    // A client resumes only a broken stream, so this side closes the connection even if it seems open.
    this.#response?.destroy()
    this.#response = response
    openStream(response)
    this.#held?.setConnected(true)
    for (const event of this.#held?.after(after) ?? []) response.write(event)
    if (this.#held?.isFinished) response.end()
    else this.#follow(response)
  }

  abandon(reason: Error): void {
    this.#gone?.abort(reason)
  }

  expire(): void {
    if (this.#isStream) this.#write(': keepalive\n\n')
    else this.#open()
    this.#waitFor(this.#options.keepAlive.commentMs)
  }

  #waitFor(ms: number): void {
    this.#silence = this.#options.keepAlive.deadlines.watch(this, performance.now(), ms)
  }

  /** Returns the number of the event; `undefined` if the message reaches nobody. */
  #send(text: string, isLossy: boolean): number | undefined {
    this.#open()
    const held = this.#held
    if (!held) return this.#write(toEvent(text)) ? 0 : undefined
    const { number, event } = held.add(text, isLossy)
    return this.#write(event) || held.isHeld ? number : undefined
  }

  #open(): void {
    const response = this.#response
    if (this.#isStream || !isOpen(response)) return
    this.#isStream = true
    openStream(response)
    const { hold, isPrimed } = this.#options
    this.#held = hold?.(this)
    if (this.#held && isPrimed) response.write(this.#held.prime(RETRY_MS))
  }

  #write(text: string): boolean {
    const response = this.#response
    if (!isOpen(response)) return false
    response.write(text)
    return true
  }

  /** Sends no more signs of life. */
  #rest(): void {
    if (this.#silence) this.#options.keepAlive.deadlines.unwatch(this.#silence)
    this.#silence = undefined
  }

  #follow(response: ServerResponse): void {
    response.once('close', () => {
      if (response.writableFinished || this.#response !== response) return
      this.#response = undefined
      this.#held?.setConnected(false)
      if (this.#held?.isHeld) return
      this.#rest()
      this.#gone?.abort(new Error('the client went away'))
    })
  }
}

function isOpen(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.destroyed && !response.writableEnded
}

function openStream(response: ServerResponse): void {
  response.setHeader('content-type', 'text/event-stream')
  response.setHeader('cache-control', 'no-store')
  response.setHeader('x-accel-buffering', 'no')
  response.writeHead(200)
  response.flushHeaders()
}

/** Caches the serialized form of results, because one result may answer many requests. */
export class KeptBytes<Reply extends object> {
  readonly #bytes = new WeakMap<Reply, Buffer>()

  /** Returns the bytes of a reply. `toResult` returns the result to serialize. */
  of(reply: Reply, toResult: () => object): Buffer {
    let bytes = this.#bytes.get(reply)
    if (!bytes) this.#bytes.set(reply, (bytes = Buffer.from(toJsonText(toResult()))))
    return bytes
  }
}
