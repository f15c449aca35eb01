import { isUtf8 } from 'node:buffer'
import type { Dispatcher } from 'undici'
import { type ContentDecoder, createContentDecoder } from './content-coding.ts'
import { type AnswerHead, EVENT_STREAM, type HttpAnswer, isSuccess } from './http-answer.ts'
import type { AnswerHandler } from './http-connections.ts'
import { toUpstreamError } from './http-errors.ts'
import { createFloodGuard, FLOOD, type FloodGuard, LIMITS } from './limits.ts'
import { createEventStream, type EventStream, messageTooLarge, notUtf8 } from './lines.ts'
import { Pieces } from './pieces.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** The maximum size of an error body that is read for the reason. */
const ERROR_BODY_BYTES = 64 * 1024
const LINGER_MS = 1_000
/** The maximum number of interim answers, such as 103. */
const MAX_INTERIM = 16

type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly path: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
  /** The headers of this request only. */
  readonly ownHeaders?: readonly string[] | undefined
  readonly body?: string | undefined
}

/** Sends requests. The answers go to their handlers. */
interface HttpSender {
  send(request: HttpRequest, handler: AnswerHandler): void
}

/** One HTTP request and its answer. */
export class HttpExchange implements AnswerHandler {
  /** Settles when the answer has ended. @throws {UpstreamError} `upstream_down`, `upstream_too_large`, `aborted` */
  readonly answer: Promise<HttpAnswer>
  cutConnection: (() => void) | undefined
  readonly #resolve: (answer: HttpAnswer) => void
  readonly #reject: (error: UpstreamError) => void
  readonly #onEvent: (data: string) => void
  readonly #secret: string | undefined
  /** The path of the request. */
  readonly path: string
  readonly #body = new Pieces()
  /** Called with the status of the answer, before its body. */
  onHead: ((status: number) => void) | undefined
  #head: AnswerHead = { status: 0, contentType: '', sessionId: undefined, location: undefined }
  #events: EventStream | undefined
  #decoder: ContentDecoder | undefined
  /** Why the connection ended while a body was still being decoded. */
  #broken: Error | undefined
  #hasBody = false
  #flood: FloodGuard | undefined
  #controller: Dispatcher.DispatchController | undefined
  #interim = 0
  #failure: UpstreamError | undefined
  #lingering: NodeJS.Timeout | undefined
  #hasEnded = false

  /**
   * Sends the request. `onEvent` receives the data of each event while an event stream is open. A `secret` is removed
   * from everything that the server answers.
   */
  constructor(pool: HttpSender, request: HttpRequest, onEvent: (data: string) => void, secret?: string) {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#secret = secret
    this.path = request.path
    this.#onEvent = secret === undefined ? onEvent : (data) => onEvent(without(secret, data))
    pool.send(request, this)
  }

  /** Returns the session id in the answer's headers, once they have arrived. */
  sessionId(): string | undefined {
    return this.#head.sessionId
  }

  /** Aborts a stream that does not end soon after its answer. */
  expectEnd(): void {
    if (!this.#hasEnded) this.#lingering ??= setTimeout(this.abort, LINGER_MS)
  }

  readonly abort = (): void => this.#fail(new UpstreamError('aborted', 'was aborted'))

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#failure) controller.abort(this.#failure)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    const problem = status < 200 ? this.#interimProblem(status) : bodyProblem(headers)
    if (problem !== undefined) return controller.abort(new Error(problem))
    if (status < 200) return
    const type = headerOf(headers, 'content-type') ?? ''
    const contentType = type === JSON_TYPE ? type : (type.split(';', 1)[0]?.trim().toLowerCase() ?? '')
    const sessionId = headerOf(headers, 'mcp-session-id') || undefined
    const location = headerOf(headers, 'location')
    this.#head = { status, contentType, sessionId, location }
    const coding = headerOf(headers, 'content-encoding')
    if (coding !== undefined) this.#trying(() => this.#decode(coding))
    if (isSuccess(status) && contentType === EVENT_STREAM) this.#openEvents()
    this.onHead?.(status)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#decoder) return this.#onData(chunk)
    if (!this.#decoder.push(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#decoder) this.#decoder.end()
    else this.#finish()
  }

  onResponseError(_: unknown, error: Error): void {
    this.#broken = this.#failure ?? error
    // The last bytes that arrived may be the answer.
    if (this.#decoder && !this.#hasEnded) this.#decoder.end()
    else this.#break(this.#broken)
  }

  #decode(coding: string): void {
    this.#decoder = createContentDecoder(coding, {
      onData: (bytes) => this.#onData(bytes),
      onEnd: (error) => {
        const broken = this.#broken ?? error
        if (broken) this.#break(broken === error ? notDecoded(coding, error) : broken)
        else this.#finish()
      },
      onDrain: () => this.#controller?.resume(),
    })
  }

  #openEvents(): void {
    this.#head = { ...this.#head, contentType: EVENT_STREAM }
    this.#events = createEventStream(LIMITS.messageBytes, this.#onEvent)
    this.#flood = createFloodGuard(() => performance.now())
  }

  #onData(chunk: Buffer): void {
    this.#trying(() => this.#read(chunk))
  }

  #trying(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#fail(toUpstreamError(error))
    }
  }

  #finish(): void {
    if (this.#hasEnded) return
    this.#events?.end()
    this.#end()
    const bytes = this.#body.take()
    // The text of an error is only used in messages.
    if (isSuccess(this.#head.status) && !isUtf8(bytes)) return this.#reject(notUtf8())
    const body = bytes.toString()
    const text = this.#secret === undefined ? body : without(this.#secret, body)
    const { status, contentType, sessionId, location } = this.#head
    const { lastEventId, retryMs } = this.#events ?? {}
    this.#resolve({ status, contentType, sessionId, location, text, lastEventId, retryMs })
  }

  #break(error: Error): void {
    this.#end()
    this.#reject(toUpstreamError(error))
  }

  #read(chunk: Buffer): void {
    if (!this.#hasBody) this.#onFirst(chunk)
    if (this.#events) {
      this.#events.push(chunk)
      if (this.#flood?.add(chunk.length)) throw new UpstreamError('upstream_too_large', `sent ${FLOOD}`)
      return
    }
    this.#body.push(chunk)
    if (isSuccess(this.#head.status)) {
      if (this.#body.bytes > LIMITS.messageBytes) throw messageTooLarge()
    } else if (this.#body.bytes > ERROR_BODY_BYTES) {
      this.#finish()
      this.#controller?.abort(messageTooLarge())
    }
  }

  /** Some servers send events without the type of an event stream. */
  #onFirst(chunk: Buffer): void {
    this.#hasBody = true
    const { status, contentType } = this.#head
    if (this.#events || contentType === JSON_TYPE || !isSuccess(status)) return
    if (EVENT_START.test(chunk.toString('latin1', 0, EVENT_START_BYTES))) this.#openEvents()
  }

  #interimProblem(status: number): string | undefined {
    return status <= 101 || ++this.#interim > MAX_INTERIM ? `answered HTTP ${status}` : undefined
  }

  #fail(error: UpstreamError): void {
    if (this.#hasEnded) return
    this.#failure = error
    this.#end()
    this.#reject(error)
    this.#controller?.abort(error)
  }

  #end(): void {
    this.#hasEnded = true
    clearTimeout(this.#lingering)
    this.#decoder?.stop()
  }
}

function notDecoded(coding: string, cause: Error): UpstreamError {
  return new UpstreamError('upstream_protocol', `answered a body that is not ${coding}`, { cause })
}

function without(secret: string, text: string): string {
  return text.includes(secret) ? text.replaceAll(secret, '[redacted]') : text
}

/**
 * Rejects an unclear transfer coding: undici accepts any coding that ends with `chunked`, and does not decode the
 * others.
 */
function bodyProblem(headers: AnswerHeaders): string | undefined {
  const coding = headers['transfer-encoding']
  const isClear = coding === undefined || (typeof coding === 'string' && CHUNKED.test(coding))
  return isClear ? undefined : 'sent a body whose end is unclear'
}

function headerOf(headers: AnswerHeaders, name: string): string | undefined {
  const value = headers[name]
  return (Array.isArray(value) ? value[0] : value)?.replace(LAST_SPACE, '')
}

const EVENT_START = /^(?:\u00EF\u00BB\u00BF)?(?:data|event|id|retry)?:/
const EVENT_START_BYTES = 16
const JSON_TYPE = 'application/json'
const CHUNKED = /^chunked[\t ]*$/i
const LAST_SPACE = /[\t ]+$/
