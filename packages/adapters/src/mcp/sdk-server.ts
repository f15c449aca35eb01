import { ConfigError, type JsonSchema } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/core/internal'
import { type ListedTool, type McpResult, RPC_CODES, RpcError } from '@toolgate/mcp'
import { type Exchange, type SdkContext, toExchange } from './sdk-context.ts'

/**
 * A server of the official SDK: `Server` or `McpServer`, of `@modelcontextprotocol/server` (v2) or of
 * `@modelcontextprotocol/sdk` (v1). Described by what is asked of it, so that neither need be installed.
 */
export type SdkServer = LowServer | { readonly server: LowServer }

export interface LowServer {
  registerCapabilities(capabilities: { tools?: { listChanged?: boolean } }): void
  sendToolListChanged(): Promise<void>
}

type Handler = (request: never, context: never) => Promise<object>

/** What both SDKs have in public beside that, with each one's own types. */
interface AnyServer extends LowServer {
  readonly transport?: unknown
  fallbackRequestHandler?: Handler | undefined
  setRequestHandler(...args: unknown[]): void
  removeRequestHandler(method: string): void
  assertCanSetRequestHandler(method: string): void
}

export type ServeTools = (exchange: Exchange) => Promise<object>

/** A server whose `tools/list` and `tools/call` are the gate's. */
export interface HeldServer {
  /** Tells the client that its list has changed. */
  tellChanged(): Promise<void>
  /** The connection there is now, if there is one. */
  connection(): unknown
  readonly fitting: Fitting
}

export type ToolMethod = 'tools/list' | 'tools/call'
const METHODS: readonly ToolMethod[] = ['tools/list', 'tools/call']

/**
 * Gives the server's tools over to the gate, for good: a handler that somebody sets for them afterwards is an error.
 *
 * The requests come through the SDKs' fallback handler, which both have and which gives them as they came: a parsed copy
 * lacks what its schema drops.
 *
 * @throws {ConfigError} for a server that is none, is connected already, or has tools of its own
 */
export function holdTools(
  given: SdkServer,
  serve: Readonly<Record<ToolMethod, ServeTools>>,
  { listChanged }: { readonly listChanged: boolean },
): HeldServer {
  const server = toLowServer(given)
  if (server.transport !== undefined) throw new ConfigError('server', 'is connected already: guard it before that')
  const isTaken = canAsk(server)
  if (METHODS.some(isTaken))
    throw new ConfigError(
      'server',
      'has tools of its own, which would not be the gate’s: give a server without tools, and bring those in with fromMcpServer',
    )
  server.registerCapabilities({ tools: { listChanged } })
  holdFallback(server, serve)
  holdHandlers(server, isTaken)
  return {
    tellChanged: () => server.sendToolListChanged(),
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
    throw new ConfigError('server', 'must give a Server or an McpServer of the official SDK')
  return server
}

/** Both SDKs throw where a handler is there already. */
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
    // JSON-RPC 2.0 §5.1, as the SDK says it where it has no fallback.
    throw new RpcError(RPC_CODES.methodNotFound, 'Method not found')
  }
  Object.defineProperty(server, 'fallbackRequestHandler', {
    get: () => fallback,
    set: (handler: Handler | undefined) => {
      others = handler
    },
  })
}

/** A handler of theirs would be asked instead of the gate. */
function holdHandlers(server: AnyServer, isTaken: (method: ToolMethod) => boolean): void {
  const set = server.setRequestHandler.bind(server)
  const refuse = (method: string): never => {
    throw new ConfigError('server', `its ${method} is the gate’s: tools come from there`)
  }
  Object.defineProperty(server, 'setRequestHandler', {
    value(...args: unknown[]) {
      set(...args)
      // v1 names the method within a schema, so what was set is seen only afterwards.
      const taken = METHODS.filter(isTaken)
      for (const method of taken) server.removeRequestHandler(method)
      if (taken[0] !== undefined) refuse(taken[0])
    },
  })
}

/** What the clients of an SDK's server can read of a list, and of a result. */
export interface Fitting {
  fitList(tools: readonly ListedTool[]): readonly ListedTool[]
  fitResult(result: McpResult, outputSchema: JsonSchema | undefined): object
}

/** A server of v2. */
interface FittingServer {
  projectCallToolResult(result: object, outputSchema: JsonSchema | undefined): object
}

/** It fits lists by itself, and results when it is asked. */
function fittingV2(server: FittingServer): Fitting {
  return {
    fitList: (tools) => tools,
    fitResult: (result, outputSchema) => server.projectCallToolResult(result, outputSchema),
  }
}

/** Before MCP 2026-07-28 structured content is an object, and so is what an output schema describes. */
const FITTING_V1: Fitting = {
  fitList: (tools) =>
    tools.map((tool) => {
      const { outputSchema, ...rest } = tool
      return outputSchema === undefined || outputSchema['type'] === 'object' ? tool : rest
    }),
  fitResult(result) {
    const { structuredContent, content = [], ...rest } = result
    if (structuredContent === undefined || isObject(structuredContent)) return result
    const isTold = content.some((block) => isObject(block) && block['type'] === 'text')
    const told = isTold ? [] : [{ type: 'text', text: JSON.stringify(structuredContent) }]
    return { ...rest, content: [...content, ...told] }
  },
}
