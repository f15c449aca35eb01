import { createRequire } from 'node:module'
import type { IncomingHttpHeaders } from 'node:http'
import { errnoOf, messageOf } from '@toolgate/core/internal'
import type { JsonRpcError } from '@toolgate/mcp'
import type { Dispatcher, Pool } from 'undici'
import { clip, notMcp, parseMessages, rpcError } from './json-rpc.ts'
import { createFloodGuard, FLOOD, type FloodGuard, LIMITS } from './limits.ts'
import { createEventStream, type EventStream, messageTooLarge } from './lines.ts'
import { UpstreamError } from './upstream.ts'

const MAX_CONNECTIONS = 256
const CONNECT_TIMEOUT_MS = 5_000
/** How much of an error body is read for the reason. */
const ERROR_BODY_BYTES = 64 * 1024
const LINGER_MS = 1_000

let PoolClass: typeof Pool | undefined

/** Returns kept-alive connections to one origin. They have no timeouts, as a call may be silent for long: callers set them. */
export function createPool(origin: string): Pool {
  // All of undici takes 13 MB more than this one class, which is loaded for the first HTTP server.
  PoolClass ??= createRequire(import.meta.url)('undici/lib/dispatcher/pool.js') as typeof Pool
  return new PoolClass(origin, {
    connections: MAX_CONNECTIONS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  })
}

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly path: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
  readonly body?: string
}

interface AnswerHead {
  readonly status: number
  /** The media type alone, in lower case. */
  readonly contentType: string
  readonly sessionId: string | undefined
  readonly location: string | undefined
}

export interface HttpAnswer extends AnswerHead {
  /** The body; empty for an event stream. */
  readonly text: string
  /** Where to resume an event stream that ended too early. */
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

/** One HTTP request and its answer. */
export class HttpExchange implements Dispatcher.DispatchHandler {
  /** Settles when the answer has ended. @throws {UpstreamError} `upstream_down`, `upstream_too_large`, `aborted` */
  readonly answer: Promise<HttpAnswer>
  readonly #resolve: (answer: HttpAnswer) => void
  readonly #reject: (error: UpstreamError) => void
  readonly #onEvent: (data: string) => void
  readonly #body: Buffer[] = []
  #bodyBytes = 0
  #head: AnswerHead = { status: 0, contentType: '', sessionId: undefined, location: undefined }
  #events: EventStream | undefined
  #flood: FloodGuard | undefined
  #controller: Dispatcher.DispatchController | undefined
  #failure: UpstreamError | undefined
  #lingering: NodeJS.Timeout | undefined
  #hasEnded = false

  /** Sends the request. `onEvent` receives the data of each event while an event stream goes on. */
  constructor(pool: Pool, { method, path, headers, body }: HttpRequest, onEvent: (data: string) => void) {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#onEvent = onEvent
    try {
      pool.dispatch({ method, path, headers: [...headers], body: body ?? null }, this)
    } catch (error) {
      reject(toUpstreamError(error))
    }
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

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    const contentType = (firstOf(headers['content-type']) ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const sessionId = firstOf(headers['mcp-session-id'])
    this.#head = { status, contentType, sessionId, location: firstOf(headers['location']) }
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
    const [first] = this.#body
    const text = (first && this.#body.length === 1 ? first : Buffer.concat(this.#body)).toString()
    const { lastEventId, retryMs } = this.#events ?? {}
    this.#resolve({ ...this.#head, text, lastEventId, retryMs })
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
    this.#bodyBytes += chunk.length
    this.#body.push(chunk)
    if (this.#head.status === 200) {
      if (this.#bodyBytes > LIMITS.messageBytes) throw messageTooLarge()
    } else if (this.#bodyBytes > ERROR_BODY_BYTES) {
      this.onResponseEnd()
      this.#controller?.abort(messageTooLarge())
    }
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

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'refused the connection: nothing listens there'],
  ['ENOTFOUND', 'was not found: no such host'],
  ['EAI_AGAIN', 'was not found: names cannot be looked up now'],
  ['ECONNRESET', 'closed the connection'],
  ['EPIPE', 'closed the connection'],
  ['EHOSTUNREACH', 'cannot be reached'],
  ['ENETUNREACH', 'cannot be reached'],
  ['UND_ERR_SOCKET', 'closed the connection'],
  ['UND_ERR_CONNECT_TIMEOUT', 'did not accept the connection in 5 s'],
])

function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  // A name with several addresses fails with one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const code = errnoOf(first)
  const reason = REASONS.get(code ?? '') ?? `broke the connection (${clip(code ?? messageOf(first))})`
  return new UpstreamError('upstream_down', reason, { cause: error })
}

/** The codes of servers for an unknown session: that of the SDKs, the one before it, and that of JSON-RPC. */
const LOST_SESSION_CODES: ReadonlySet<number> = new Set([-32_000, -32_001, -32_600])

/** An HTTP status that means a failure, if the body has no JSON-RPC error. */
export class StatusError extends UpstreamError {
  readonly status: number

  constructor(status: number, message: string) {
    super('upstream_protocol', message)
    this.status = status
  }
}

/** The server does not know the session of a request. Internal: the request is sent again. */
export class SessionLost extends UpstreamError {
  constructor() {
    super('upstream_down', 'no longer knows its session')
  }
}

/**
 * Returns the error for an answer without a result.
 *
 * A refusal of access (401, 403) is described by its status, anything else by the JSON-RPC error in the body, if it has
 * one. Proxies in front of a server answer 5xx too, so there the error must carry the request's id, and says nothing
 * about the server's era.
 */
export function answerError(
  answer: HttpAnswer,
  request: { readonly id: number; readonly inSession: boolean; readonly isProbe?: boolean },
): UpstreamError {
  const { status, text } = answer
  if (request.inSession && losesSession(answer, request.id)) return new SessionLost()
  const byStatus = status < 400 || status === 401 || status === 403 || (status >= 500 && request.isProbe)
  const error = byStatus ? undefined : errorIn(text, request.id, { named: status >= 500 })
  return error ? rpcError(error) : statusError(answer)
}

function losesSession({ status, text }: HttpAnswer, id: number): boolean {
  if (status !== 404 && status !== 400) return false
  const error = errorIn(text, id, { named: false })
  return error === undefined || LOST_SESSION_CODES.has(error.code)
}

/** Returns the JSON-RPC error in a body: about this request or, unless it must be `named`, about an unknown one. */
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
