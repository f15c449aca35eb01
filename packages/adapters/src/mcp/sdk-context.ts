import type { JsonObject } from '@toolgate/values/json'

/** A token that the host has validated, as both SDKs carry it (`AuthInfo`). */
export interface McpAuthInfo {
  readonly token: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Seconds since 1970. */
  readonly expiresAt?: number | undefined
  readonly resource?: URL | undefined
  readonly extra?: Readonly<Record<string, unknown>> | undefined
}

/** The identity behind a request, as far as the SDK knows it. */
export interface McpRequest {
  readonly authInfo: McpAuthInfo | undefined
  /** The transport's session, if it has sessions. */
  readonly sessionId: string | undefined
  /** The request's headers. Set over HTTP only. */
  readonly headers: Headers | undefined
}

/** A client's request, unparsed, with its signal and a way to send notifications. */
export interface Exchange {
  readonly params: JsonObject
  readonly from: McpRequest
  readonly signal: AbortSignal
  notify(notification: { method: string; params: object }): Promise<void>
  /** Whether the request is of MCP 2026-07-28 or later. */
  readonly isModern: boolean
  /** Whether the server instance serves its client for more than this request. */
  readonly isLasting: boolean
  /** The SDK's argument to its handlers: `RequestHandlerExtra` of v1, `ServerContext` of v2. */
  readonly context: unknown
}

type Notify = Exchange['notify']

/** The fields of an SDK's context that the adapter reads. */
export type SdkContext = ContextV1 | ContextV2

interface ContextV1 {
  readonly sessionId?: string | undefined
  readonly signal: AbortSignal
  readonly authInfo?: McpAuthInfo | undefined
  readonly requestInfo?: { readonly headers: HeadersV1 } | undefined
  readonly sendNotification: Notify
}

interface ContextV2 {
  readonly sessionId?: string | undefined
  readonly mcpReq: { readonly signal: AbortSignal; readonly notify: Notify; readonly envelope?: object | undefined }
  readonly http?:
    | { readonly authInfo?: McpAuthInfo | undefined; readonly req?: { readonly headers: Headers } | undefined }
    | undefined
}

type HeadersV1 = Readonly<Record<string, string | readonly string[] | undefined>>

/** Returns the request in an SDK handler's context, or `undefined` for any other value. */
export function readContext(context: unknown): McpRequest | undefined {
  return isSdkContext(context) ? requestOf(context) : undefined
}

/** Converts a request to the form that the adapter reads. */
export function toExchange(params: JsonObject, context: SdkContext): Exchange {
  const from = requestOf(context)
  const isV2 = 'mcpReq' in context
  return {
    params,
    from,
    signal: isV2 ? context.mcpReq.signal : context.signal,
    notify: isV2 ? context.mcpReq.notify : context.sendNotification,
    isModern: isV2 && context.mcpReq.envelope !== undefined,
    // Over HTTP without sessions, each request has its own server.
    isLasting: from.headers === undefined || from.sessionId !== undefined,
    context,
  }
}

function isSdkContext(context: unknown): context is SdkContext {
  return typeof context === 'object' && context !== null && ('mcpReq' in context || 'sendNotification' in context)
}

function requestOf(context: SdkContext): McpRequest {
  const { sessionId } = context
  if ('mcpReq' in context) return { authInfo: context.http?.authInfo, sessionId, headers: context.http?.req?.headers }
  return { authInfo: context.authInfo, sessionId, headers: toHeaders(context.requestInfo?.headers) }
}

function toHeaders(given: HeadersV1 | undefined): Headers | undefined {
  if (given === undefined) return undefined
  const headers = new Headers()
  for (const [name, values] of Object.entries(given))
    for (const value of [values].flat()) if (value !== undefined) headers.append(name, value)
  return headers
}
