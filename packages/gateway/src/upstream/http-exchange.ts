import type { Dispatcher, Pool } from 'undici'

import { createEventStream, type EventStream } from './event-stream.ts'
import { createFloodGuard, FLOOD, type FloodGuard } from './flood.ts'
import { clip } from './json-rpc.ts'
import { LIMITS } from './limits.ts'
import { UpstreamError } from './upstream.ts'

/** How much of a body that is no answer is read, for the reason. */
const ERROR_BODY_BYTES = 64 * 1024
const LINGER_MS = 1_000

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body?: string
}

export interface HttpAnswer {
  readonly status: number
  /** The media type alone, in lower case. */
  readonly contentType: string
  readonly sessionId: string | undefined
  readonly location: string | undefined
  /** The body; empty for an event stream. */
  readonly text: string
  /** Where to go on after an event stream that ended too early. */
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

export interface HttpExchange {
  /** Settles when the answer has ended. @throws {UpstreamError} `upstream_down`, `upstream_too_large`, `aborted` */
  readonly answer: Promise<HttpAnswer>
  /** The session that the server gave, once the answer has begun. */
  sessionId(): string | undefined
  /** What was waited for has come: a stream that does not end soon is broken off. */
  expectEnd(): void
  readonly abort: () => void
}

/** Makes one HTTP request. `onEvent` gets the data of each event while an event stream goes on. */
export function exchange(pool: Pool, request: HttpRequest, onEvent: (data: string) => void): HttpExchange {
  const { promise: answer, resolve, reject } = Promise.withResolvers<HttpAnswer>()
  const body: Buffer[] = []
  let bodyBytes = 0
  let head: Pick<HttpAnswer, 'status' | 'contentType' | 'sessionId' | 'location'> | undefined
  let events: EventStream | undefined
  let flood: FloodGuard | undefined
  let controller: Dispatcher.DispatchController | undefined
  let failure: UpstreamError | undefined
  let lingering: NodeJS.Timeout | undefined
  let ended = false

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started
      if (failure) started.abort(failure)
    },
    onResponseStart(_, status, headers) {
      const contentType = (text(headers['content-type']) ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
      head = { status, contentType, sessionId: text(headers['mcp-session-id']), location: text(headers['location']) }
      if (status === 200 && contentType === 'text/event-stream') {
        events = createEventStream(LIMITS.messageBytes, onEvent)
        flood = createFloodGuard(() => performance.now())
      }
    },
    onResponseData(_, chunk) {
      try {
        take(chunk)
      } catch (error) {
        fail(toUpstreamError(error))
      }
    },
    onResponseEnd: finish,
    onResponseError(_, error) {
      end()
      reject(failure ?? toUpstreamError(error))
    },
  }
  try {
    pool.dispatch({ ...request, headers: request.headers as string[], body: request.body ?? null }, handler)
  } catch (error) {
    reject(toUpstreamError(error))
  }
  return {
    answer,
    sessionId: () => head?.sessionId,
    expectEnd() {
      if (!ended) lingering ??= setTimeout(abort, LINGER_MS)
    },
    abort,
  }

  function abort(): void {
    fail(new UpstreamError('aborted', 'was aborted'))
  }

  function take(chunk: Buffer): void {
    if (events) {
      events.push(chunk)
      if (flood?.add(chunk.length)) throw new UpstreamError('upstream_too_large', `sent ${FLOOD}`)
      return
    }
    bodyBytes += chunk.length
    body.push(chunk)
    if (head?.status === 200) {
      if (bodyBytes > LIMITS.messageBytes) throw tooLarge()
    } else if (bodyBytes > ERROR_BODY_BYTES) {
      finish()
      controller?.abort(tooLarge())
    }
  }

  function finish(): void {
    end()
    const all = body.length === 1 ? (body[0] as Buffer) : Buffer.concat(body)
    resolve({
      ...(head as NonNullable<typeof head>),
      text: all.toString(),
      lastEventId: events?.lastEventId,
      retryMs: events?.retryMs,
    })
  }

  function fail(error: UpstreamError): void {
    if (ended) return
    failure = error
    end()
    reject(error)
    controller?.abort(error)
  }

  function end(): void {
    ended = true
    clearTimeout(lingering)
  }
}

function tooLarge(): UpstreamError {
  const limit = LIMITS.messageBytes / 1024 / 1024
  return new UpstreamError('upstream_too_large', `answered more than ${limit} MiB in one message`)
}

function text(header: string | string[] | undefined): string | undefined {
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
  // With several addresses for one name, each has failed in its own way.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error
  const { code, message } = first as NodeJS.ErrnoException
  const reason = REASONS.get(code ?? '') ?? `broke the connection (${clip(code ?? message)})`
  return new UpstreamError('upstream_down', reason, { cause: error })
}
