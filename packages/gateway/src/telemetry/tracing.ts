/** The methods whose requests are followed. What a client makes up is no name of a span. */
export type FollowedMethod = 'tools/call' | 'tools/list' | 'server/discover'

/** HTTP, or the pipes of stdio. */
export type Transport = 'tcp' | 'pipe'

export interface ServedRequest {
  readonly method: FollowedMethod
  /** The name of the called tool, where the catalog has one of that name. */
  readonly tool?: string | undefined
  readonly id: string | number | undefined
  /** A revision that is known here. */
  readonly protocolVersion: string | undefined
  /** `params._meta`, as it came. */
  readonly meta: unknown
}

export interface SentRequest {
  readonly method: FollowedMethod
  readonly tool?: string | undefined
  /** The server, as the configuration names it. */
  readonly server: string
  readonly transport: Transport
  /** Where it is, where that is a place on the network. */
  readonly host: string | undefined
  readonly port: number | undefined
  readonly protocolVersion: string | undefined
}

/** Follows one MCP request. None of its methods throws of itself. */
export interface McpOperation {
  /** What the request takes along in its `_meta`, where its span is recorded. */
  readonly meta: { readonly traceparent: string } | undefined
  /** Runs work so that what it starts is traced beneath the request. */
  within<T>(work: () => T): T
  /** The request has got its JSON-RPC id. */
  sentAs(id: string | number): void
  /** It will end as an error of this type: `tool_error`, a JSON-RPC code, or a code of ours. The first one counts. */
  fail(type: string, rpcCode?: number): void
  end(): void
}

/** Follows MCP requests, on both sides of the gateway. */
export interface McpTracing {
  startServed(request: ServedRequest): McpOperation | undefined
  startSent(request: SentRequest): McpOperation | undefined
}

/** Gives what follows MCP requests now: `undefined` while nobody listens. */
export type FindTracing = () => McpTracing | undefined
