import type { Caller, JsonSchema, Progress, ToolAnnotations } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { ToolIcon, ToolMeta } from '@toolgate/core/tools'
import { type JsonRpcError, McpError, type McpResult } from '@toolgate/mcp'

/** The kinds of items that a server can offer, named as MCP's capabilities. Resources include resource templates. */
export const OFFERS = ['tools', 'resources', 'prompts'] as const
export type Offer = (typeof OFFERS)[number]

/** Returns whether a server of the configuration offers one of these kinds. */
export function isOffered(
  servers: readonly { readonly offers: readonly Offer[] }[],
  ...kinds: readonly Offer[]
): boolean {
  return servers.some(({ offers }) => kinds.some((kind) => offers.includes(kind)))
}

/** A tool as an upstream lists it (MCP `Tool`). Unknown fields are kept. */
export interface UpstreamTool {
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
interface McpResource {
  readonly uri: string
  readonly name: string
  readonly [field: string]: unknown
}

/** A resource template as an upstream lists it (MCP `ResourceTemplate`). Unknown fields are kept. */
interface McpTemplate {
  readonly uriTemplate: string
  readonly name: string
  readonly [field: string]: unknown
}

/** A prompt as an upstream lists it (MCP `Prompt`). Unknown fields are kept. */
interface McpPrompt {
  readonly name: string
  readonly [field: string]: unknown
}

/** The latest lists of a server, for the kinds that its entry offers. An unchanged list stays the same array. */
export interface UpstreamItems {
  readonly tools: readonly UpstreamTool[]
  readonly resources: readonly McpResource[]
  readonly templates: readonly McpTemplate[]
  readonly prompts: readonly McpPrompt[]
}

export const NO_ITEMS: UpstreamItems = { tools: [], resources: [], templates: [], prompts: [] }

/**
 * A listed item that cannot be offered, or that is offered without its invalid `part`. A list that cannot be read is
 * named by its method.
 */
export interface RejectedItem {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  readonly name: string
  readonly reason: string
  readonly part?: 'name' | 'outputSchema'
}

export const UPSTREAM_STATUSES = ['starting', 'ready', 'down', 'stopped'] as const
export type UpstreamStatus = (typeof UPSTREAM_STATUSES)[number]

export interface UpstreamState {
  readonly status: UpstreamStatus
  /**
   * Why the server is down, without a full stop: `exited with code 1 (Error: no such folder)`. While it is starting: what
   * it waits for.
   */
  readonly reason?: string
  /** When the state last changed, in wall-clock milliseconds. */
  readonly since: number
  readonly restarts: number
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  /** Whether the server keeps a session for the connection (HTTP only). */
  readonly hasSession?: boolean
  readonly serverInfo?: { readonly name: string; readonly version: string }
  /** Whether the server runs tool calls as tasks. */
  readonly tasks?: boolean
  /** The kinds of items that the server has, offered or not. Absent until it has answered. */
  readonly has?: readonly Offer[]
  /** The server's own instructions for models. */
  readonly instructions?: string
  /** Listed items that are invalid, and lists that cannot be read. */
  readonly rejected: readonly RejectedItem[]
}

/** The requests that a caller may send to a server. */
const CALL_METHODS = [
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

/** The client of a request, as the server can reach it. */
export interface RequestClient {
  readonly caller: Caller
  /** Answers a request of the server. Rejects with an `McpError`, which is sent to the server. */
  readonly ask?: ((method: string, params: JsonObject, signal: Cancelling) => Promise<JsonObject>) | undefined
  /** Receives the params of a log message. */
  readonly log?: ((params: JsonObject) => void) | undefined
}

export interface UpstreamCall {
  readonly method: CallMethod
  /** The params that MCP defines for the method, without `_meta`: `{ name, arguments }`, `{ uri }`. */
  readonly params: JsonObject
  /** The caller. A server may have one instance per user. */
  readonly caller: Caller
  readonly signal: AbortSignal | Cancelling
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** The client capabilities to declare to the server with this call (2026-07-28). Default: none. */
  readonly capabilities?: JsonObject | undefined
  /**
   * Answers a request that the server sends during this call (earlier revisions). Rejects with an `McpError`, which is
   * sent back to the server. Default: every request is refused.
   */
  readonly onAsk?: RequestClient['ask']
  /** Called with the params of each log message of this call. */
  readonly onLog?: RequestClient['log']
  /** The minimum severity of those messages. Default: the server sends none. */
  readonly logLevel?: string | undefined
  /** The answers to the server's `input_required`, with its `requestState` (2026-07-28). */
  readonly answers?: { readonly inputResponses: JsonObject; readonly requestState?: string | undefined } | undefined
}

/** One MCP server behind the gateway. It is restarted after failures until it is closed. */
export interface Upstream {
  readonly name: string
  readonly state: UpstreamState
  /** The latest lists. They are kept while the server is down. */
  readonly items: UpstreamItems
  /** Called after every change of `state` or `items`. */
  subscribe(listener: () => void): () => void
  /**
   * Starts the server. Resolves when it is ready or its first start has failed. Never rejects. Failed starts are
   * repeated.
   */
  start(): Promise<void>
  /**
   * Ends the server with its running calls, as if it had crashed, and starts it again soon. Resolves when the restart
   * has begun.
   */
  restart(): Promise<void>
  /**
   * Sends a request and returns its result. A server of MCP 2026-07-28 may answer with the `resultType`
   * `input_required`, or with `task` if the extension for tasks was declared to it.
   *
   * @throws {UpstreamError}
   */
  readonly call: (call: UpstreamCall) => Promise<McpResult>
  /**
   * Calls the listener after each announced change of a resource, until the returned function is called.
   *
   * @throws {UpstreamError}
   */
  watch(uri: string, caller: Caller, listener: () => void): Promise<() => void>
  /** Stops the server and its child processes within 2 s. */
  close(): Promise<void>
}

type UpstreamErrorCode =
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
  /** The JSON-RPC error from the server, for `upstream_rpc`. */
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

  /** The data of the error. Clients receive it, so it counts as output of the call. */
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
