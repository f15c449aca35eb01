import { ConfigError, type Progress } from '@toolgate/core'
import { checkShape } from '@toolgate/values'
import { LIST_CHANGED, relayedError, RpcError } from '@toolgate/mcp'
import {
  type LinkCall,
  type LinkListener,
  type McpLink,
  type McpSource,
  type McpSourceOptions,
  readMcpSource,
  SOURCE_SHAPE,
} from './source.ts'

/**
 * A connected client: `Client` of `@modelcontextprotocol/client` (v2) or of `@modelcontextprotocol/sdk` (v1), or one
 * of `@ai-sdk/mcp`. The type names only the members used, so none of them has to be installed.
 */
export interface McpClient {
  listTools(params?: never, options?: never): Promise<object>
  callTool(params: never, ...rest: never[]): Promise<object>
}

/**
 * Returns the tools of a connected client's MCP server, for `createGate({ sources: [source] })`.
 *
 * The client may be of SDK v1, SDK v2 or `@ai-sdk/mcp`. Its results stay `CallToolResult`s. The server's hints only
 * tighten, unless you trust them.
 *
 * @throws {ConfigError} for an invalid client or overlay
 * @throws the client's error, if the server's list cannot be read
 * @example
 * const files = await fromMcpClient(client, { namespace: 'files', overlay: { 'write_*': { tags: ['write'] } } })
 * const gate = createGate({ sources: [files], policy: { deny: ['tag:write'] } })
 */
export async function fromMcpClient(client: McpClient, options: McpSourceOptions = {}): Promise<McpSource> {
  if (typeof client?.listTools !== 'function' || typeof client.callTool !== 'function')
    throw new ConfigError('client', 'must be a connected client of an MCP SDK')
  checkShape('fromMcpClient', options, SOURCE_SHAPE)
  return readMcpSource(toLink(client), options)
}

/** Returns the link for a client of any of the three kinds. */
function toLink(client: McpClient): McpLink {
  if ('toolsFromDefinitions' in client) return linkOfAiSdk(client)
  return linkOfSdk(client as unknown as OfficialClient)
}

interface SdkCallOptions {
  readonly signal: AbortSignal
  readonly timeout: number
  readonly onprogress?: (progress: Progress) => void
}

/** The longest delay of a timer, in milliseconds: the gate limits the time of a call. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

function toOptions({ signal, onProgress }: LinkCall): SdkCallOptions {
  return { signal, timeout: NO_TIMEOUT_MS, ...(onProgress && { onprogress: onProgress }) }
}

interface SdkCallParams {
  readonly name: string
  readonly arguments: LinkCall['arguments']
}

interface AiSdkClient {
  listTools(options?: { params?: { cursor: string } }): Promise<object>
  callTool(call: SdkCallParams & { options: SdkCallOptions }): Promise<object>
}

/** Returns the link for `@ai-sdk/mcp`. That client announces no changes: call `refresh` on the source. */
function linkOfAiSdk(client: AiSdkClient): McpLink {
  return {
    list: (cursor) => client.listTools(cursor === undefined ? {} : { params: { cursor } }),
    call: (call) => asOwnErrors(client.callTool({ ...toParams(call), options: toOptions(call) })),
    follow: () => () => {},
  }
}

/** The members that both versions of the official SDK have. The optional methods exist only in v2. */
interface OfficialClient {
  readonly transport?: unknown
  listTools(params?: { cursor: string }, options?: { cacheMode: 'refresh' }): Promise<object>
  callTool(params: SdkCallParams, ...rest: unknown[]): Promise<object>
  onclose?: (() => void) | undefined
  fallbackNotificationHandler?: ((notification: { readonly method: string }) => Promise<void>) | undefined
  getServerCapabilities(): { readonly tools?: { readonly listChanged?: boolean } } | undefined
  getProtocolEra?(): 'legacy' | 'modern' | undefined
  readonly autoOpenedSubscription?: unknown
  listen?(filter: { toolsListChanged: true }): Promise<SdkSubscription>
}

interface SdkSubscription {
  readonly closed: Promise<'local' | 'graceful' | 'remote'>
  close(): Promise<void>
}

function linkOfSdk(client: OfficialClient): McpLink {
  const isV2 = client.getProtocolEra !== undefined
  return {
    async list(cursor) {
      // v2 would return an empty list here.
      if (client.transport === undefined) throw new Error(CLOSED)
      // Without a cursor v2 reads all pages and caches them.
      return client.listTools(cursor === undefined ? undefined : { cursor }, { cacheMode: 'refresh' })
    },
    call: (call) =>
      asOwnErrors(
        // In v1 the second argument is a result schema, and `undefined` selects the default.
        isV2
          ? client.callTool(toParams(call), toOptions(call))
          : client.callTool(toParams(call), undefined, toOptions(call)),
      ),
    follow(listener) {
      const unlisten = listen(client, listener)
      const forgetClose = addClose(client, () => listener.closed(new Error(CLOSED)))
      const forgetChanges = addNotification(client, LIST_CHANGED, listener.changed)
      return () => {
        unlisten()
        forgetClose()
        forgetChanges()
      }
    },
  }
}

const CLOSED = 'The connection is closed.'

function toParams({ name, arguments: input }: LinkCall): SdkCallParams {
  return { name, arguments: input }
}

function addClose(client: OfficialClient, closed: () => void): () => void {
  const before = client.onclose
  let isOpen = true
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no EventTarget
  client.onclose = () => {
    before?.()
    if (isOpen) closed()
  }
  return () => {
    isOpen = false
  }
}

/**
 * Subscribes to a notification. If the client has its own handler for this method, only that handler is called, and the
 * host must call `refresh`.
 */
function addNotification(client: OfficialClient, method: string, changed: () => void): () => void {
  const before = client.fallbackNotificationHandler
  let isOpen = true
  client.fallbackNotificationHandler = async (notification) => {
    if (isOpen && notification.method === method) changed()
    await before?.(notification)
  }
  return () => {
    isOpen = false
  }
}

const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 60_000

/** Opens the stream of changes of MCP 2026-07-28, and reopens it when it breaks. */
function listen(client: OfficialClient, listener: LinkListener): () => void {
  if (client.getProtocolEra?.() !== 'modern' || client.getServerCapabilities()?.tools?.listChanged !== true)
    return () => {}
  let isOpen = client.autoOpenedSubscription === undefined
  let subscription: SdkSubscription | undefined
  let timer: NodeJS.Timeout | undefined

  const open = async (waitMs: number): Promise<void> => {
    if (!isOpen) return
    try {
      subscription = await client.listen?.({ toolsListChanged: true })
      if (!isOpen) return await subscription?.close()
      // The list may have changed while no stream was open.
      if (waitMs > FIRST_WAIT_MS) listener.changed()
      if ((await subscription?.closed) === 'local') return
      again(FIRST_WAIT_MS)
    } catch {
      again(waitMs)
    }
  }
  const again = (waitMs: number) => {
    if (isOpen) timer = setTimeout(() => void open(Math.min(2 * waitMs, LONGEST_WAIT_MS)), waitMs).unref()
  }
  void open(FIRST_WAIT_MS)
  return () => {
    isOpen = false
    clearTimeout(timer)
    void subscription?.close().catch(() => {})
  }
}

/** The codes of v1's own errors: connection closed, request timed out. */
const LOCAL_CODES: ReadonlySet<number> = new Set([-32_000, -32_001])

async function asOwnErrors(answer: Promise<object>): Promise<object> {
  try {
    return await answer
  } catch (error) {
    throw toRpcError(error) ?? error
  }
}

/** Returns the JSON-RPC error that a server answered with; `undefined` for any other fault. */
function toRpcError(error: unknown): RpcError | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const { code } = error
  const data = 'data' in error ? error.data : undefined
  // Only JSON-RPC codes are negative: those of HTTP and the DOM are positive.
  if (typeof code !== 'number' || !Number.isSafeInteger(code) || code >= 0 || LOCAL_CODES.has(code)) return undefined
  // v1 puts the code before the message.
  const relayed = relayedError({ code, message: error.message.replace(/^MCP error -?\d+: /, ''), data })
  return new RpcError(relayed.code, relayed.message, relayed.data)
}
