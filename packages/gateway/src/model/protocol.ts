import { isObject, toJsonText } from '@toolgate/values/json'
import type { ServerResponse } from 'node:http'
import type { RequestId } from '@toolgate/mcp'

/**
 * The JSON-RPC errors of this endpoint: `rule → code and HTTP status`.
 *
 * JSON-RPC 2.0 §5.1, and MCP 2026-07-28 for -32020 (header mismatch) and -32022 (unsupported version).
 * -32000 is in the range for implementations. The SDK uses it too, for HTTP requests that are not JSON-RPC.
 */
export const RPC_ERRORS = {
  body_not_json: { code: -32700, status: 400 },
  body_too_large: { code: -32000, status: 413 },
  body_not_message: { code: -32600, status: 400 },
  batch_refused: { code: -32600, status: 400 },
  content_type: { code: -32000, status: 415 },
  not_acceptable: { code: -32000, status: 406 },
  method_not_post: { code: -32000, status: 405 },
  header_mismatch: { code: -32020, status: 400 },
  version_unsupported: { code: -32022, status: 400 },
  /** Before 2026-07-28; the code of the SDKs. */
  version_refused: { code: -32000, status: 400 },
  envelope_invalid: { code: -32602, status: 400 },
  method_unknown: { code: -32601, status: 404 },
  params_invalid: { code: -32602, status: 200 },
  origin_refused: { code: -32000, status: 403 },
  key_refused: { code: -32000, status: 401 },
  key_not_for_mcp: { code: -32000, status: 403 },
  scope_insufficient: { code: -32000, status: 403 },
  issuer_unavailable: { code: -32000, status: 503 },
  /** MCP 2025-11-25, transports, "session management"; the code of the SDKs. */
  session_unknown: { code: -32001, status: 404 },
  /** An answer between replicas: the asker looks for the session again. */
  session_elsewhere: { code: -32000, status: 421 },
  owner_unreachable: { code: -32000, status: 503 },
  /** The call may have run, so the client decides whether to repeat it. */
  owner_lost: { code: -32000, status: 502 },
  forward_refused: { code: -32000, status: 403 },
  /** The code of the SDKs. A 404 would mean that the session has ended. */
  event_unknown: { code: -32000, status: 400 },
  loop_refused: { code: -32600, status: 400 },
  app_unknown: { code: -32000, status: 404 },
  /** The gateway finishes running calls but accepts no new ones. */
  stopping: { code: -32000, status: 503 },
  streams_full: { code: -32603, status: 200 },
  subscriptions_full: { code: -32603, status: 200 },
  /** For a GET, where 200 would open the stream. */
  session_streams_full: { code: -32603, status: 429 },
  internal: { code: -32603, status: 500 },
} as const satisfies Record<string, { code: number; status: number }>

export type RpcRule = keyof typeof RPC_ERRORS

/** Thrown for a request that this endpoint refuses, with the rule that it breaks. */
export class RpcFault extends Error {
  override readonly name = 'RpcFault'
  readonly rule: RpcRule
  readonly data: unknown
  readonly headers: Readonly<Record<string, string>>
  readonly status: number

  constructor(
    rule: RpcRule,
    message: string,
    options: { data?: unknown; headers?: Readonly<Record<string, string>>; status?: number } = {},
  ) {
    super(message)
    this.status = options.status ?? RPC_ERRORS[rule].status
    this.rule = rule
    this.data = options.data
    this.headers = options.headers ?? {}
  }
}

/** Returns the response body of a fault. `id` is `null` if the request's id could not be read (JSON-RPC 2.0 §5). */
export function toFaultBody(fault: RpcFault, id: RequestId | null): string {
  const { code } = RPC_ERRORS[fault.rule]
  return toJsonText({
    jsonrpc: '2.0',
    id,
    error: { code, message: fault.message, ...(fault.data === undefined ? {} : { data: fault.data }) },
  })
}

/** The maximum length, longer than any id that a client creates. */
export const MAX_ID_LENGTH = 256

/** Returns the id of a parsed request, if it may be sent back. Responses are not answered. */
export function echoableId(body: unknown): RequestId | null {
  if (!isObject(body) || !Object.hasOwn(body, 'id')) return null
  const { id, method } = body
  if (typeof method !== 'string') return null
  const isEchoable =
    typeof id === 'number' || typeof id === 'bigint' || (typeof id === 'string' && id.length <= MAX_ID_LENGTH)
  return isEchoable ? id : null
}

/** Sends a JSON response. */
export function sendJson(
  response: ServerResponse,
  text: string,
  status: number = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  })
  response.end(text)
}

/**
 * Sends a JSON-RPC message as the only event of a stream. The body of any status but 200 is JSON, since an HTTP error is
 * no stream.
 */
export function sendEvent(
  response: ServerResponse,
  text: string,
  status: number = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (status !== 200) return sendJson(response, text, status, headers)
  const event = toEvent(text)
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(event),
    ...headers,
  })
  response.end(event)
}

/** Returns a JSON-RPC message as a server-sent event. */
export function toEvent(text: string): string {
  return `event: message\ndata: ${text}\n\n`
}

/** Whether a method is one of a notification. Its `id` is absent, which some SDKs write as `null`. */
export function isNotification(method: unknown): boolean {
  return typeof method === 'string' && method.startsWith('notifications/')
}
