import { errnoOf, messageOf } from '@toolgate/values'
import type { JsonRpcError } from '@toolgate/mcp'
import { EVENT_STREAM, type HttpAnswer, isSuccess } from './http-answer.ts'
import { redirectProblem } from './redirects.ts'
import { answersOther, clip, notMcp, parseMessages, rpcError, type RpcMessage } from './json-rpc.ts'
import { UpstreamError } from '../../model/upstream.ts'
import { connectionReason } from '../../util/connection-reasons.ts'
import { ProxyError } from '../../util/proxy-tunnel.ts'

/** Returns the error for a connection or a body that broke. */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  if (error instanceof ProxyError)
    return new UpstreamError('upstream_down', `cannot be reached: ${error.message}`, { cause: error })
  const code = errnoOf(error)
  const reason = connectionReason(error) ?? `broke the connection (${clip(code ?? messageOf(error))})`
  return new UpstreamError('upstream_down', reason, { cause: error })
}

/** The codes for an unknown session: that of the SDKs, that of earlier SDKs, and that of JSON-RPC. */
const LOST_SESSION_CODES: ReadonlySet<number> = new Set([-32_000, -32_001, -32_600])

/** An HTTP status that means a failure, for a body without a JSON-RPC error. */
export class StatusError extends UpstreamError {
  readonly status: number
  /** The body, which a message need not show. */
  readonly text: string

  constructor(status: number, message: string, text = '') {
    super('upstream_protocol', message)
    this.status = status
    this.text = text
  }
}

/** The server does not know the session of a request, which has not run. This is internal: it is sent again. */
export class SessionLost extends UpstreamError {
  constructor() {
    super('upstream_down', 'no longer knows its session')
  }
}

/** Whether a proxy answered, whose server is gone. The request may have run. */
export function isOfProxy(status: number): boolean {
  return status === 502 || status === 503 || status === 504
}

/** Whether an answer says that the server may be gone, or that it no longer accepts the credentials. */
export function mayBeGone(status: number): boolean {
  return status === 401 || isOfProxy(status)
}

/** Whether a new session may help where a request of an idle session fails so. */
export function mayEndSession(error: UpstreamError): boolean {
  return (
    error instanceof SessionLost || (error instanceof StatusError && mayBeGone(error.status)) || isAboutSession(error)
  )
}

/**
 * Whether an error may be that of a server that does not know the session. Servers say it with any status and code,
 * such as `-32603: Session terminated` with 200. A tool may say it too, so the session is tried before it is replaced.
 */
export function isAboutSession(error: UpstreamError): boolean {
  const { code, message } = error
  const isRefusal = code === 'upstream_rpc' || code === 'upstream_protocol'
  return isRefusal && (SESSION.test(message) || (error instanceof StatusError && SESSION.test(error.text)))
}

const SESSION = /session|initiali[sz]/i

/** Whether two requests were refused alike, so that neither of them has reached a tool. */
export function isSameRefusal(error: UpstreamError, other: UpstreamError): boolean {
  return error.code === other.code && error.message === other.message && error.rpc?.code === other.rpc?.code
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
  request: {
    readonly id: number
    readonly inSession: boolean
    readonly isProbe?: boolean
    /** Where the request was sent. */
    readonly url?: URL
  },
): UpstreamError {
  const { status, text } = answer
  if (request.inSession && losesSession(answer, request.id)) return new SessionLost()
  const byStatus = status < 400 || status === 401 || status === 403 || (status >= 500 && request.isProbe)
  const error = byStatus ? undefined : errorIn(text, request.id, { named: status >= 500 })
  if (error) return rpcError(error)
  // The text of another request may belong to another user.
  return statusError(answerToOther(text, request.id) ? { ...answer, text: '' } : answer, request.url)
}

function answerToOther(text: string, id: number): RpcMessage | undefined {
  try {
    return parseMessages(text).find((message) => answersOther(message, id))
  } catch {
    return undefined
  }
}

function losesSession({ status, text }: HttpAnswer, id: number): boolean {
  if (status === 410) return true
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
    const message = parseMessages(jsonIn(text))[0]
    return message?.kind === 'error' && (message.id === id || (message.id === null && !named))
      ? message.error
      : undefined
  } catch {
    return undefined
  }
}

/** Returns the JSON of an error that some servers write as an event. */
function jsonIn(text: string): string {
  return EVENT_DATA.exec(text)?.[1] ?? text
}

const EVENT_DATA = /^(?:(?:event|id|retry):.*[\r\n]+)*data:(.*)/

const PROXY_LOGIN =
  'is behind a proxy that asks for a login (HTTP 407); write its user and password in the URL of the proxy'

function statusError({ status, contentType, location, text }: HttpAnswer, url?: URL): StatusError {
  if (isSuccess(status)) {
    const nothing = text.trim() === '' && contentType !== EVENT_STREAM
    return new StatusError(status, nothing ? `answered nothing (HTTP ${status})` : notMcp(text).message)
  }
  if (status === 407) return new StatusError(status, PROXY_LOGIN)
  if (status === 401) return new StatusError(status, 'asked for other credentials (HTTP 401)')
  if (status === 403) return new StatusError(status, 'refused access (HTTP 403)', text)
  if (status < 400 && location !== undefined) return new StatusError(status, redirectProblem(location, url))
  return new StatusError(status, `answered HTTP ${status}${text ? ` (${clip(text, 100)})` : ''}`)
}
