import { isUtf8 } from 'node:buffer'
import { errnoOf, messageOf } from '@toolgate/values'
import type { JsonRpcError } from '@toolgate/mcp'
import type { Dispatcher } from 'undici'
import type { AnswerHandler } from './http-connections.ts'
import { answersOther, clip, notMcp, parseMessages, rpcError, type RpcMessage } from './json-rpc.ts'
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

interface AnswerHead {
  readonly status: number
  /** The media type without parameters, in lower case. */
  readonly contentType: string
  readonly sessionId: string | undefined
  readonly location: string | undefined
}

export interface HttpAnswer extends AnswerHead {
  /** The body; empty for an event stream. */
  readonly text: string
  /** The event id at which to resume an event stream that ended too early. */
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

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
export interface HttpSender {
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
  readonly #body = new Pieces()
  #head: AnswerHead = { status: 0, contentType: '', sessionId: undefined, location: undefined }
  #events: EventStream | undefined
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
    const [sessionId, location] = [headerOf(headers, 'mcp-session-id'), headerOf(headers, 'location')]
    this.#head = { status, contentType, sessionId, location }
    if (status !== 200 || contentType !== 'text/event-stream') return
    this.#events = createEventStream(LIMITS.messageBytes, this.#onEvent)
    this.#flood = createFloodGuard(() => performance.now())
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    try {
      this.#read(chunk)
    } catch (error) {
      this.#fail(toUpstreamError(error))
    }
  }

  onResponseEnd(): void {
    this.#end()
    const bytes = this.#body.take()
    // The text of an error is only used in messages.
    if (this.#head.status === 200 && !isUtf8(bytes)) return this.#reject(notUtf8())
    const body = bytes.toString()
    const text = this.#secret === undefined ? body : without(this.#secret, body)
    const { status, contentType, sessionId, location } = this.#head
    const { lastEventId, retryMs } = this.#events ?? {}
    this.#resolve({ status, contentType, sessionId, location, text, lastEventId, retryMs })
  }

  onResponseError(_: unknown, error: Error): void {
    this.#end()
    this.#reject(this.#failure ?? toUpstreamError(error))
  }

  #read(chunk: Buffer): void {
    if (this.#events) {
      this.#events.push(chunk)
      if (this.#flood?.add(chunk.length)) throw new UpstreamError('upstream_too_large', `sent ${FLOOD}`)
      return
    }
    this.#body.push(chunk)
    if (this.#head.status === 200) {
      if (this.#body.bytes > LIMITS.messageBytes) throw messageTooLarge()
    } else if (this.#body.bytes > ERROR_BODY_BYTES) {
      this.onResponseEnd()
      this.#controller?.abort(messageTooLarge())
    }
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
  }
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

const JSON_TYPE = 'application/json'
const CHUNKED = /^chunked[\t ]*$/i
const LAST_SPACE = /[\t ]+$/

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'refused the connection: nothing listens there'],
  ['ENOTFOUND', 'was not found: no such host'],
  ['EAI_AGAIN', 'was not found: names cannot be looked up now'],
  ['ECONNRESET', 'closed the connection'],
  ['EPIPE', 'closed the connection'],
  ['EHOSTUNREACH', 'cannot be reached'],
  ['ENETUNREACH', 'cannot be reached'],
  ['UND_ERR_SOCKET', 'closed the connection'],
  ['UND_ERR_HEADERS_OVERFLOW', 'sent too many headers'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'sent a body of another length than it named'],
  ['UND_ERR_CONNECT_TIMEOUT', 'did not accept the connection in 5 s'],
])

function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  // If a name has several addresses, the error contains one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const code = errnoOf(first)
  const reason = REASONS.get(code ?? '') ?? `broke the connection (${clip(code ?? messageOf(first))})`
  return new UpstreamError('upstream_down', reason, { cause: error })
}

/** The codes for an unknown session: that of the SDKs, that of earlier SDKs, and that of JSON-RPC. */
const LOST_SESSION_CODES: ReadonlySet<number> = new Set([-32_000, -32_001, -32_600])

/** An HTTP status that means a failure, for a body without a JSON-RPC error. */
export class StatusError extends UpstreamError {
  readonly status: number

  constructor(status: number, message: string) {
    super('upstream_protocol', message)
    this.status = status
  }
}

/** The server does not know the session of a request. This is internal: the request is sent again. */
export class SessionLost extends UpstreamError {
  constructor() {
    super('upstream_down', 'no longer knows its session')
  }
}

/**
 * Returns the error for an answer without a result.
 *
 * A refusal of access (401, 403) is described by its status, any other by the JSON-RPC error in the body, if there is
 * one. Proxies in front of a server answer 5xx too. So for these, the error must have the request's id, and does not
 * determine the server's era.
 */
export function answerError(
  answer: HttpAnswer,
  request: { readonly id: number; readonly inSession: boolean; readonly isProbe?: boolean },
): UpstreamError {
  const { status, text } = answer
  if (request.inSession && losesSession(answer, request.id)) return new SessionLost()
  const byStatus = status < 400 || status === 401 || status === 403 || (status >= 500 && request.isProbe)
  const error = byStatus ? undefined : errorIn(text, request.id, { named: status >= 500 })
  if (error) return rpcError(error)
  // The text of another request may belong to another user.
  return statusError(answerToOther(text, request.id) ? { ...answer, text: '' } : answer)
}

function answerToOther(text: string, id: number): RpcMessage | undefined {
  try {
    return parseMessages(text).find((message) => answersOther(message, id))
  } catch {
    return undefined
  }
}

function losesSession({ status, text }: HttpAnswer, id: number): boolean {
  if (status !== 404 && status !== 400) return false
  const other = answerToOther(text, id)
  // An error of another request does not describe this one, which may have run, unless the error is about the session.
  if (other) return other.kind === 'error' && LOST_SESSION_CODES.has(other.error.code)
  const error = errorIn(text, id, { named: false })
  return error === undefined || LOST_SESSION_CODES.has(error.code)
}

/**
 * Returns the JSON-RPC error in a body, if it is about this request. Unless `named`, an error without an id counts too.
 */
function errorIn(text: string, id: number, { named }: { readonly named: boolean }): JsonRpcError | undefined {
  try {
    const message = parseMessages(text)[0]
    return message?.kind === 'error' && (message.id === id || (message.id === null && !named))
      ? message.error
      : undefined
  } catch {
    return undefined
  }
}

function statusError({ status, contentType, location, text }: HttpAnswer): StatusError {
  if (status === 200) return new StatusError(status, notMcp(text === '' ? contentType : text).message)
  if (status === 401) return new StatusError(status, 'asked for other credentials (HTTP 401)')
  if (status === 403) return new StatusError(status, 'refused access (HTTP 403)')
  if (status < 400 && location)
    return new StatusError(status, `answered with a redirect (HTTP ${status}), which is not followed`)
  return new StatusError(status, `answered HTTP ${status}${text ? ` (${clip(text, 100)})` : ''}`)
}
