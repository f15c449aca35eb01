import type { HttpAnswer } from './http-exchange.ts'
import { clip, notMcp, parseMessages, type RpcError } from './json-rpc.ts'
import { rpcError } from './rpc-error.ts'
import { UpstreamError } from './upstream.ts'

/** What servers answer for a session they do not know: the SDKs' own code, the one in use before it, and JSON-RPC's. */
const LOST_SESSION_CODES: ReadonlySet<number> = new Set([-32_000, -32_001, -32_600])

/** An HTTP status that stands for a failure, where no JSON-RPC error says more. */
export class StatusError extends UpstreamError {
  readonly status: number

  constructor(status: number, message: string) {
    super('upstream_protocol', message)
    this.status = status
  }
}

/** The server does not know the session that a request was sent in. Not for callers: the request is sent again. */
export class SessionLost extends UpstreamError {
  constructor() {
    super('upstream_down', 'does not know its session any more')
  }
}

/**
 * Gives the error that an answer stands for, which holds no result.
 *
 * A refusal of access (401, 403) is named by its status, anything else by the JSON-RPC error in the body, where there is
 * one. What stands before a server answers 5xx too, so there the error must carry the request's id; and no error with 5xx
 * says which era a server speaks.
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
function errorIn(text: string, id: number, { named }: { readonly named: boolean }): RpcError | undefined {
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
