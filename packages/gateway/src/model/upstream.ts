import type { Caller, JsonSchema, Progress, ToolAnnotations } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { ToolIcon, ToolMeta } from '@toolgate/core/tools'
import { type JsonRpcError, McpError, type McpResult } from '@toolgate/mcp'

/** What a server can offer, by MCP's capabilities. Resources include resource templates. */
export const OFFERS = ['tools', 'resources', 'prompts'] as const
export type Offer = (typeof OFFERS)[number]

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

/** A resource as an upstream lists it (MCP `Resource`). Unknown fields are kept. */
export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly [field: string]: unknown
}

/** A resource template as an upstream lists it (MCP `ResourceTemplate`). Unknown fields are kept. */
export interface McpTemplate {
  readonly uriTemplate: string
  readonly name: string
  readonly [field: string]: unknown
}

/** A prompt as an upstream lists it (MCP `Prompt`). Unknown fields are kept. */
export interface McpPrompt {
  readonly name: string
  readonly [field: string]: unknown
}

/** The latest lists of a server: the kinds that its entry offers. A list that has not changed stays the same array. */
export interface UpstreamItems {
  readonly tools: readonly McpTool[]
  readonly resources: readonly McpResource[]
  readonly templates: readonly McpTemplate[]
  readonly prompts: readonly McpPrompt[]
}

export const NO_ITEMS: UpstreamItems = { tools: [], resources: [], templates: [], prompts: [] }

/** An item that a server lists and that cannot be offered. A list that cannot be read is named by its method. */
export interface RejectedItem {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  readonly name: string
  readonly reason: string
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
  /** Over HTTP: the server keeps a session for the connection. */
  readonly hasSession?: boolean
  readonly serverInfo?: { readonly name: string; readonly version: string }
  /** It runs calls of tools as tasks. */
  readonly tasks?: boolean
  /** The kinds that it has, offered or not. Absent until it has answered. */
  readonly has?: readonly Offer[]
  /** What it tells models about itself. */
  readonly instructions?: string
  /** Listed items that are invalid, and lists that cannot be read. */
  readonly rejected: readonly RejectedItem[]
}

/** The requests that a caller may send to a server. */
export const CALL_METHODS = [
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
  'tasks/get',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
] as const
export type CallMethod = (typeof CALL_METHODS)[number]

/** The client of a request, as the server reaches it. */
export interface RequestClient {
  readonly caller: Caller
  /** Answers a request of the server. Rejects with an `McpError` that the server gets. */
  readonly ask?: ((method: string, params: JsonObject, signal: Cancelling) => Promise<JsonObject>) | undefined
  /** Takes the params of a log message. */
  readonly log?: ((params: JsonObject) => void) | undefined
}

export interface UpstreamCall {
  readonly method: CallMethod
  /** As MCP defines them for the method, without `_meta`: `{ name, arguments }`, `{ uri }`. */
  readonly params: JsonObject
  /** The user that the call is for: a server may have an instance for each. */
  readonly caller: Caller
  readonly signal: AbortSignal | Cancelling
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** The client capabilities that the server gets with this call (2026-07-28). Default: none. */
  readonly capabilities?: JsonObject | undefined
  /**
   * Answers a request that the server sends during this call (earlier revisions). Rejects with an `McpError` that goes
   * back to the server. Default: each is refused.
   */
  readonly onAsk?: RequestClient['ask']
  /** Called with the params of each log message of this call. */
  readonly onLog?: RequestClient['log']
  /** The least severe level of those messages. Default: the server sends none. */
  readonly logLevel?: string | undefined
  /** The answers to the server's `input_required`, and its `requestState` (2026-07-28). */
  readonly answers?: { readonly inputResponses: JsonObject; readonly requestState?: string | undefined } | undefined
}

/** One MCP server behind the gateway, kept alive until it is closed. */
export interface Upstream {
  readonly name: string
  readonly state: UpstreamState
  /** Kept while the server is down. */
  readonly items: UpstreamItems
  /** Called after every change of `state` or `items`. */
  subscribe(listener: () => void): () => void
  /** Starts it. Resolves when it is ready or its first start has failed, and never rejects. Failed starts are repeated. */
  start(): Promise<void>
  /** Ends it with the calls that it runs, as if it had ended itself, and starts it again soon. Resolves when it has begun to. */
  restart(): Promise<void>
  /**
   * Sends a request and returns its result. A server of MCP 2026-07-28 may answer with the `resultType`
   * `input_required`, and one that is told of the extension for tasks with `task`.
   *
   * @throws {UpstreamError}
   */
  call(call: UpstreamCall): Promise<McpResult>
  /**
   * Calls the listener after each change of a resource that the server announces, until the returned function is called.
   *
   * @throws {UpstreamError}
   */
  watch(uri: string, caller: Caller, listener: () => void): Promise<() => void>
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

  /** Clients get it, so that it is output of the call. */
  get data(): unknown {
    return this.rpc?.data
  }

  /** Returns an `UpstreamError` unchanged, and wraps any other error. */
  static from(error: unknown): UpstreamError {
    if (error instanceof UpstreamError) return error
    const reason = error instanceof Error ? error.message : String(error)
    return new UpstreamError('upstream_protocol', `failed (${reason})`, { cause: error })
  }
}
