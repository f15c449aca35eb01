import { type Progress, ToolgateError } from '@toolgate/core'
import { checkShape } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { type JsonRpcError, LIST_CHANGED, type RequestId, RPC_CODES, RpcError } from '@toolgate/mcp'
import { readContext } from './sdk-context.ts'
import {
  type LinkCall,
  type LinkListener,
  type McpLink,
  type McpSource,
  type McpSourceOptions,
  readMcpSource,
  SOURCE_SHAPE,
} from './source.ts'

/** An `McpServer`, or a `Server` with tools, of SDK v1 or v2. It must not be connected yet. */
export interface OwnMcpServer {
  connect(transport: never): Promise<void>
  close(): Promise<void>
}

/**
 * Returns the tools of your own MCP server, such as an `McpServer` with `registerTool`, as a source for a gate. `guard`
 * then serves them. The server is connected only to the gate, so its tools cannot be reached around it.
 *
 * Its handlers get the `authInfo` and the headers of the request that they serve. The source follows tools that are
 * registered, enabled or removed later. The server's hints are trusted, unless you pass `trustHints: false`.
 *
 * @throws {ConfigError} for an invalid overlay
 * @throws {ToolgateError} `source_invalid` for a server that does not answer `initialize`
 * @throws the SDK's error, if the server is already connected
 */
export async function fromMcpServer(server: OwnMcpServer, options: McpSourceOptions = {}): Promise<McpSource> {
  checkShape('fromMcpServer', options, SOURCE_SHAPE)
  const loopback = new Loopback()
  await server.connect(loopback.transport as never)
  await loopback.initialize()
  // A failure to close is reported to the owner when they close the server themselves.
  const close = () => void server.close().catch(() => {})
  return readMcpSource(loopback, { trustHints: true, ...options }, close)
}

interface JsonRpcMessage {
  readonly jsonrpc: '2.0'
  readonly id?: RequestId
  readonly method?: string
  readonly params?: JsonObject
  readonly result?: unknown
  readonly error?: JsonRpcError
}

/** The part of the SDKs' `Transport` that a server uses. */
interface SdkTransport {
  onmessage?: (message: JsonRpcMessage, extra?: object) => void
  onclose?: () => void
  start(): Promise<void>
  send(message: JsonRpcMessage): Promise<void>
  close(): Promise<void>
}

interface PendingMcpCall {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly onProgress: LinkCall['onProgress']
}

const LATEST_WITH_SESSIONS = '2025-11-25'

/** The client's end of a connection within this process. It only lists and calls tools. */
class Loopback implements McpLink {
  /** The server's end. */
  readonly transport: SdkTransport
  readonly #pending = new Map<unknown, PendingMcpCall>()
  readonly #listeners = new Set<LinkListener>()
  #lastId = 0
  #hasTools = false
  #closed: Error | undefined

  constructor() {
    this.transport = {
      start: async () => {},
      send: async (message) => {
        // Asynchronous like other transports: `send` returns before an answer arrives.
        queueMicrotask(() => this.#receive(message))
      },
      close: async () => this.#close(),
    }
  }

  /** @throws {ToolgateError} `source_invalid` */
  async initialize(): Promise<void> {
    const clientInfo = { name: 'toolgate', version: '0' }
    const params = { protocolVersion: LATEST_WITH_SESSIONS, capabilities: {}, clientInfo }
    const answer = await this.#request('initialize', params)
    if (!isObject(answer) || !isObject(answer['capabilities']))
      throw new ToolgateError('source_invalid', 'The MCP server does not answer.')
    this.#hasTools = answer['capabilities']['tools'] !== undefined
    this.#deliver({ method: 'notifications/initialized' })
  }

  async list(cursor: string | undefined): Promise<unknown> {
    return this.#hasTools ? this.#request('tools/list', cursor === undefined ? {} : { cursor }) : { tools: [] }
  }

  call(call: LinkCall): Promise<unknown> {
    return this.#request('tools/call', { name: call.name, arguments: call.arguments }, call)
  }

  follow(listener: LinkListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #request(method: string, params: JsonObject, call?: LinkCall): Promise<unknown> {
    if (this.#closed) throw this.#closed
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#pending.set(id, { resolve, reject, onProgress: call?.onProgress })
    const cancel = () => {
      this.#pending.delete(id)
      this.#deliver({ method: 'notifications/cancelled', params: { requestId: id } })
      reject(call?.signal.reason)
    }
    call?.signal.addEventListener('abort', cancel, { once: true })
    const meta = call?.onProgress ? { _meta: { progressToken: id } } : {}
    this.#deliver({ id, method, params: { ...params, ...meta } }, toExtra(call?.context))
    return promise.finally(() => call?.signal.removeEventListener('abort', cancel))
  }

  #receive({ id, method, params = {}, result, error }: JsonRpcMessage): void {
    if (method === 'notifications/progress') {
      const { progressToken, ...progress } = params
      if (isProgress(progress)) this.#pending.get(progressToken)?.onProgress?.(progress)
    } else if (method === LIST_CHANGED) {
      for (const listener of this.#listeners) listener.changed()
    } else if (method !== undefined) {
      if (id !== undefined) this.#answer(id, method)
    } else {
      const asked = this.#pending.get(id)
      this.#pending.delete(id)
      if (error) asked?.reject(new RpcError(error.code, error.message, error.data))
      else asked?.resolve(result)
    }
  }

  /** Answers a request of the server. The client has no capabilities, so only a ping is valid. */
  #answer(id: RequestId, method: string): void {
    const error = { code: RPC_CODES.methodNotFound, message: 'Method not found' }
    this.#deliver(method === 'ping' ? { id, result: {} } : { id, error })
  }

  #deliver(message: Omit<JsonRpcMessage, 'jsonrpc'>, extra?: object): void {
    this.transport.onmessage?.({ jsonrpc: '2.0', ...message }, extra)
  }

  #close(): void {
    const closed = (this.#closed ??= new Error('The server is closed.'))
    for (const { reject } of this.#pending.values()) reject(closed)
    this.#pending.clear()
    for (const listener of this.#listeners) listener.closed(closed)
    this.transport.onclose?.()
  }
}

function isProgress(value: object): value is Progress {
  return 'progress' in value && typeof value.progress === 'number'
}

/** Returns the SDK's argument for a handler, if the call came through one. */
function toExtra(context: unknown): object | undefined {
  const from = readContext(context)
  if (!from) return undefined
  const { authInfo, headers } = from
  return {
    ...(authInfo && { authInfo }),
    // v2 reads the request, and v1 reads its headers.
    ...(headers && {
      request: new Request('http://localhost/', { headers }),
      requestInfo: { headers: Object.fromEntries(headers) },
    }),
  }
}
