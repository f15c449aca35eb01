import type { Caller, JsonSchema, Progress, ToolAnnotations } from '@toolgate/core'
import type { Cancelling, ToolIcon, ToolMeta } from '@toolgate/core/internal'
import { type JsonRpcError, McpError, type McpResult } from '@toolgate/mcp'

/** A tool as an upstream lists it (MCP `Tool`). Unknown fields are kept. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations?: ToolAnnotations
  readonly icons?: readonly ToolIcon[] | null
  readonly _meta?: ToolMeta | null
  readonly [field: string]: unknown
}

export const UPSTREAM_STATUSES = ['starting', 'ready', 'down', 'stopped'] as const
export type UpstreamStatus = (typeof UPSTREAM_STATUSES)[number]

export interface UpstreamState {
  readonly status: UpstreamStatus
  /** Why it is down, without a full stop: `exited with code 1 (Error: no such folder)`. */
  readonly reason?: string
  /** Wall-clock milliseconds of the latest change. */
  readonly since: number
  readonly restarts: number
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  readonly serverInfo?: { readonly name: string; readonly version: string }
  /** Listed tools that are invalid, with the reason. */
  readonly rejected: readonly { readonly tool: string; readonly reason: string }[]
}

export interface UpstreamCall {
  readonly tool: string
  readonly arguments: unknown
  /** The user that the call is for: a server may have an instance for each. */
  readonly caller: Caller
  readonly signal: AbortSignal | Cancelling
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** One MCP server behind the gateway, kept alive until it is closed. */
export interface Upstream {
  readonly name: string
  readonly state: UpstreamState
  /** The latest list, by name. Kept while the server is down. */
  readonly tools: readonly McpTool[]
  /** Called after every change of `state` or `tools`. */
  subscribe(listener: () => void): () => void
  /** Starts it. Resolves when it is ready or its first start has failed, and never rejects. Failed starts are repeated. */
  start(): Promise<void>
  /** @throws {UpstreamError} */
  call(call: UpstreamCall): Promise<McpResult>
  /** Stops it and its children within 2 s. */
  close(): Promise<void>
}

export type UpstreamErrorCode =
  | 'upstream_down'
  | 'upstream_timeout'
  | 'upstream_protocol'
  | 'upstream_too_large'
  | 'upstream_rpc'
  | 'aborted'

/** The error of a call without a result. */
export class UpstreamError extends McpError {
  override readonly name = 'UpstreamError'
  readonly code: UpstreamErrorCode
  /** The JSON-RPC error it answered with, for `upstream_rpc`. */
  override readonly rpc: JsonRpcError | undefined

  constructor(
    code: UpstreamErrorCode,
    message: string,
    options: { rpc?: JsonRpcError | undefined; cause?: unknown } = {},
  ) {
    super(message, options)
    this.code = code
    this.rpc = options.rpc
  }

  /** Returns an `UpstreamError` unchanged, and wraps any other error. */
  static from(error: unknown): UpstreamError {
    if (error instanceof UpstreamError) return error
    const reason = error instanceof Error ? error.message : String(error)
    return new UpstreamError('upstream_protocol', `failed (${reason})`, { cause: error })
  }
}
