import { type Progress, ToolgateError } from '@toolgate/core'
import { checkShape, type McpResult } from '@toolgate/core/internal'
import { isPlainObject } from '../shared/mcp-result.ts'
import type { LinkCall, LinkListener, McpLink } from './sdk-client.ts'
import { RpcError } from './rpc-error.ts'
import { readContext } from './exchange.ts'
import { createMcpSource, type McpSource, type McpSourceOptions, SOURCE_SHAPE } from './source.ts'

/** An `McpServer`, or a `Server` with tools, of SDK v1 or v2, that is connected to nothing yet. */
export interface OwnMcpServer {
  connect(transport: never): Promise<void>
  close(): Promise<void>
}

/**
 * Gives the tools of an MCP server of your own, such as an `McpServer` with `registerTool`, for a gate: then `guard`
 * serves them. The server is connected to the gate and to nothing else, so nobody reaches its tools past it.
 *
 * Its handlers get the `authInfo` and the headers of the request that they serve. Tools that are registered, enabled
 * or removed later come and go. Its hints are yours, and so trusted; say `trustHints: false` where they are not.
 *
 * @throws {ConfigError} for an overlay that cannot be used
 * @throws {ToolgateError} `source_invalid` for a server that does not answer as one
 * @throws what the SDK throws, where the server is connected already
 */
export async function fromMcpServer(server: OwnMcpServer, options: McpSourceOptions = {}): Promise<McpSource> {
  checkShape('fromMcpServer', options, SOURCE_SHAPE)
  const loopback = createLoopback()
  await server.connect(loopback.transport as never)
  const { link } = loopback
  await loopback.initialize()
  const source = await createMcpSource(link, { trustHints: true, ...options })
  return {
    ...source,
    get failure() {
      return source.failure
    },
    get leftOut() {
      return source.leftOut
    },
    get unmatched() {
      return source.unmatched
    },
    close() {
      source.close()
      // It is the owner's listener that would fail, and he is told where he closes it himself.
      server.close().catch(() => {})
    },
  }
}

interface Message {
  readonly jsonrpc: '2.0'
  readonly id?: number | string
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** The SDKs' `Transport`, as far as a server asks for it. */
interface Transport {
  onmessage?: (message: Message, extra?: object) => void
  onclose?: () => void
  start(): Promise<void>
  send(message: Message): Promise<void>
  close(): Promise<void>
}

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly onProgress: LinkCall['onProgress']
}

const LATEST_WITH_SESSIONS = '2025-11-25'

/** A transport whose other end is this: a client that lists and calls, and can do nothing else. */
function createLoopback() {
  const pending = new Map<number | string, Pending>()
  const listeners = new Set<LinkListener>()
  let lastId = 0
  let hasTools = false
  let closed: Error | undefined

  const deliver = (message: Omit<Message, 'jsonrpc'>, extra?: object) =>
    transport.onmessage?.({ jsonrpc: '2.0', ...message }, extra)
  const transport: Transport = {
    start: async () => {},
    async send(message) {
      // Asynchronous, as any other is: who sends is not called back within.
      queueMicrotask(() => receive(message))
    },
    async close() {
      closed ??= new Error('The server is closed.')
      for (const { reject } of pending.values()) reject(closed)
      pending.clear()
      for (const listener of listeners) listener.closed(closed)
      transport.onclose?.()
    },
  }

  function receive({ id, method, params, result, error }: Message): void {
    if (method === 'notifications/progress') {
      const { progressToken, ...progress } = params ?? {}
      pending.get(progressToken as number)?.onProgress?.(progress as unknown as Progress)
    } else if (method === 'notifications/tools/list_changed') {
      for (const listener of listeners) listener.changed()
    } else if (method !== undefined) {
      // It was told of no capabilities, so of requests only a ping is one it may make.
      if (id !== undefined)
        deliver(method === 'ping' ? { id, result: {} } : { id, error: { code: -32_601, message: 'Method not found' } })
    } else {
      const asked = pending.get(id as number)
      pending.delete(id as number)
      if (error) asked?.reject(new RpcError(error.code, error.message, error.data))
      else asked?.resolve(result)
    }
  }

  async function request(method: string, params: Record<string, unknown>, call?: LinkCall): Promise<unknown> {
    if (closed) throw closed
    const id = ++lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    pending.set(id, { resolve, reject, onProgress: call?.onProgress })
    const cancel = () => {
      pending.delete(id)
      deliver({ method: 'notifications/cancelled', params: { requestId: id } })
      reject(call?.signal.reason)
    }
    call?.signal.addEventListener('abort', cancel, { once: true })
    const meta = call?.onProgress ? { _meta: { progressToken: id } } : {}
    deliver({ id, method, params: { ...params, ...meta } }, toExtra(call?.context))
    return promise.finally(() => call?.signal.removeEventListener('abort', cancel))
  }

  const link: McpLink = {
    async list(cursor) {
      return hasTools ? ((await request('tools/list', cursor === undefined ? {} : { cursor })) as never) : { tools: [] }
    },
    call: (call) => request('tools/call', { name: call.name, arguments: call.arguments }, call) as Promise<McpResult>,
    follow(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  return {
    transport,
    link,
    async initialize() {
      const clientInfo = { name: 'toolgate', version: '0' }
      const answer = await request('initialize', {
        protocolVersion: LATEST_WITH_SESSIONS,
        capabilities: {},
        clientInfo,
      })
      if (!isPlainObject(answer) || !isPlainObject(answer['capabilities']))
        throw new ToolgateError('source_invalid', 'The MCP server does not answer.')
      hasTools = answer['capabilities']['tools'] !== undefined
      deliver({ method: 'notifications/initialized' })
    },
  }
}

/** What the SDKs tell a handler of the request that it serves, where the call came by one. */
function toExtra(context: unknown): object | undefined {
  const from = readContext(context)
  if (!from) return undefined
  const { authInfo, headers } = from
  return {
    ...(authInfo && { authInfo }),
    // v2 asks for a request, v1 for its headers.
    ...(headers && {
      request: new Request('http://localhost/', { headers }),
      requestInfo: { headers: Object.fromEntries(headers) },
    }),
  }
}
