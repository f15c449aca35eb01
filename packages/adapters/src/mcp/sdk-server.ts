import { ConfigError, type JsonSchema } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { type ListedTool, type McpResult, RPC_CODES, RpcError } from '@toolgate/mcp'
import { type Exchange, type SdkContext, toExchange } from './sdk-context.ts'

/**
 * A server of the official SDK: `Server` or `McpServer`, of `@modelcontextprotocol/server` (v2) or of
 * `@modelcontextprotocol/sdk` (v1). The type names only the members used, so neither SDK has to be installed.
 */
export type SdkServer = LowServer | { readonly server: LowServer }

export interface LowServer {
  registerCapabilities(capabilities: { tools?: { listChanged?: boolean } }): void
  sendToolListChanged(): Promise<void>
}

type McpHandler = (request: never, context: never) => Promise<object>

/** Further public members of both SDKs, whose types differ. */
interface AnyServer extends LowServer {
  readonly transport?: unknown
  fallbackRequestHandler?: McpHandler | undefined
  setRequestHandler(...args: unknown[]): void
  removeRequestHandler(method: string): void
  assertCanSetRequestHandler(method: string): void
}

type ServeTools = (exchange: Exchange) => Promise<object>

/** A server whose `tools/list` and `tools/call` the gate answers. */
export interface HeldServer {
  /** Notifies the client that its list has changed. */
  announceChange(): Promise<void>
  /** Returns the current connection, if any. */
  connection(): unknown
  readonly fitting: Fitting
}

type ToolMethod = 'tools/list' | 'tools/call'
const METHODS: readonly ToolMethod[] = ['tools/list', 'tools/call']

/**
 * Makes the gate serve a server's tools. Setting another handler for them later throws.
 *
 * Both SDKs pass requests unparsed to their fallback handler, so no field is lost to a schema.
 *
 * @throws {ConfigError} for an invalid server, one that is already connected, or one with tools
 */
export function holdTools(
  given: SdkServer,
  serve: Readonly<Record<ToolMethod, ServeTools>>,
  { listChanged }: { readonly listChanged: boolean },
): HeldServer {
  const server = toLowServer(given)
  if (server.transport !== undefined)
    throw new ConfigError('server', 'is already connected: guard it before you connect it')
  const isTaken = canAsk(server)
  if (METHODS.some(isTaken))
    throw new ConfigError(
      'server',
      'has its own tools, which the gate would not control: pass a server without tools, and add those tools with fromMcpServer',
    )
  server.registerCapabilities({ tools: { listChanged } })
  holdFallback(server, serve)
  holdHandlers(server, isTaken)
  return {
    announceChange: () => server.sendToolListChanged(),
    connection: () => server.transport,
    fitting: isV2(server) ? fittingV2(server) : FITTING_V1,
  }
}

function isV2(server: LowServer): server is AnyServer & Parameters<typeof fittingV2>[0] {
  return 'projectCallToolResult' in server
}

function toLowServer(given: SdkServer): AnyServer {
  const server = (typeof given === 'object' && given !== null && 'server' in given ? given.server : given) as AnyServer
  if (typeof server?.registerCapabilities !== 'function' || typeof server.assertCanSetRequestHandler !== 'function')
    throw new ConfigError('server', 'must return a Server or an McpServer of the official SDK')
  return server
}

/** Returns a function that checks whether a method has no handler yet. Both SDKs throw if it has one. */
function canAsk(server: AnyServer): (method: ToolMethod) => boolean {
  const assertCanSet = server.assertCanSetRequestHandler.bind(server)
  return (method) => {
    try {
      assertCanSet(method)
      return false
    } catch {
      return true
    }
  }
}

function holdFallback(server: AnyServer, serve: Readonly<Record<ToolMethod, ServeTools>>): void {
  let others = server.fallbackRequestHandler
  const serving = new Map<string, ServeTools>(Object.entries(serve))
  const fallback = async (request: { method: string; params?: JsonObject }, context: SdkContext) => {
    const own = serving.get(request.method)
    if (own) return own(toExchange(request.params ?? {}, context))
    if (others) return others(request as never, context as never)
    // JSON-RPC 2.0 §5.1, with the SDK's message.
    throw new RpcError(RPC_CODES.methodNotFound, 'Method not found')
  }
  Object.defineProperty(server, 'fallbackRequestHandler', {
    get: () => fallback,
    set: (handler: McpHandler | undefined) => {
      others = handler
    },
  })
}

/** Throws if a handler for tools is set later, because it would replace the gate. */
function holdHandlers(server: AnyServer, isTaken: (method: ToolMethod) => boolean): void {
  const set = server.setRequestHandler.bind(server)
  const refuse = (method: string): never => {
    throw new ConfigError('server', `the gate handles ${method}: add tools to the gate`)
  }
  Object.defineProperty(server, 'setRequestHandler', {
    value(...args: unknown[]) {
      set(...args)
      // v1 has the method's name inside a schema, so it is known only after the handler is set.
      const taken = METHODS.filter(isTaken)
      for (const method of taken) server.removeRequestHandler(method)
      if (taken[0] !== undefined) refuse(taken[0])
    },
  })
}

/** Adapts lists and results to the client's protocol version. */
interface Fitting {
  fitList(tools: readonly ListedTool[]): readonly ListedTool[]
  fitResult(result: McpResult, outputSchema: JsonSchema | undefined): object
}

/** Converts for SDK v2. The SDK converts lists itself, and has a function that converts results. */
function fittingV2(server: {
  projectCallToolResult(result: object, outputSchema: JsonSchema | undefined): object
}): Fitting {
  return {
    fitList: (tools) => tools,
    fitResult: (result, outputSchema) => server.projectCallToolResult(result, outputSchema),
  }
}

/** Before MCP 2026-07-28, structured content and output schemas must be objects. */
const FITTING_V1: Fitting = {
  fitList: (tools) =>
    tools.map((tool) => {
      const { outputSchema, ...rest } = tool
      return outputSchema === undefined || outputSchema['type'] === 'object' ? tool : rest
    }),
  fitResult(result) {
    const { structuredContent, content = [], ...rest } = result
    if (structuredContent === undefined || isObject(structuredContent)) return result
    const hasText = content.some((block) => isObject(block) && block['type'] === 'text')
    const added = hasText ? [] : [{ type: 'text', text: JSON.stringify(structuredContent) }]
    return { ...rest, content: [...content, ...added] }
  },
}
