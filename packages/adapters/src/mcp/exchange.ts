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

/** Who asks, as far as the SDK knows it. */
export interface McpRequest {
  readonly authInfo: McpAuthInfo | undefined
  /** The transport's own, where it has sessions. */
  readonly sessionId: string | undefined
  /** Over HTTP only. */
  readonly headers: Headers | undefined
}

/** A request of a client, unparsed, and how to answer it beside its result. */
export interface Exchange {
  readonly params: Readonly<Record<string, unknown>>
  readonly from: McpRequest
  readonly signal: AbortSignal
  notify(notification: { method: string; params: object }): Promise<void>
  /** MCP 2026-07-28 or later. */
  readonly isModern: boolean
  /** The server instance stays with its client for more than this request. */
  readonly isLasting: boolean
  /** What the SDK gives its handlers: `RequestHandlerExtra` of v1, `ServerContext` of v2. */
  readonly context: unknown
}

type Notify = Exchange['notify']

/** What is read of that. */
export interface SdkContext {
  readonly sessionId?: string | undefined
  readonly signal?: AbortSignal
  readonly authInfo?: McpAuthInfo | undefined
  readonly requestInfo?:
    | { readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> }
    | undefined
  readonly sendNotification?: Notify
  readonly mcpReq?: { readonly signal: AbortSignal; readonly notify: Notify; readonly envelope?: object | undefined }
  readonly http?:
    | { readonly authInfo?: McpAuthInfo | undefined; readonly req?: { readonly headers: Headers } | undefined }
    | undefined
}

/** Gives who asks, by the context of an SDK's handler; `undefined` for anything else. */
export function readContext(context: unknown): McpRequest | undefined {
  if (typeof context !== 'object' || context === null) return undefined
  if ('mcpReq' in context) {
    const { sessionId, http } = context as SdkContext
    return { authInfo: http?.authInfo, sessionId, headers: http?.req?.headers }
  }
  if (!('sendNotification' in context)) return undefined
  const { sessionId, authInfo, requestInfo } = context as SdkContext
  return { authInfo, sessionId, headers: toHeaders(requestInfo?.headers) }
}

/** Gives a request as the adapter reads it. */
export function toExchange(params: Exchange['params'], context: SdkContext): Exchange {
  const { mcpReq } = context
  const from = readContext(context) as McpRequest
  return {
    params,
    from,
    signal: (mcpReq ?? context).signal as AbortSignal,
    notify: (mcpReq?.notify ?? context.sendNotification) as Notify,
    isModern: mcpReq?.envelope !== undefined,
    // Over HTTP without a session there is a server for each request.
    isLasting: from.headers === undefined || from.sessionId !== undefined,
    context,
  }
}

function toHeaders(given: NonNullable<SdkContext['requestInfo']>['headers'] | undefined): Headers | undefined {
  if (given === undefined) return undefined
  const headers = new Headers()
  for (const [name, values] of Object.entries(given))
    for (const value of [values].flat()) if (value !== undefined) headers.append(name, value)
  return headers
}
