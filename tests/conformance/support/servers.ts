import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { Server as EarlierServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ErrorCode, McpError, ResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import {
  callTool,
  complete,
  getPrompt,
  type Json,
  promptsOf,
  read,
  Rejected,
  RESOURCES,
  TEMPLATES,
  toListed,
  toolsOf,
  type Turn,
} from './items.ts'

/** A server on loopback with everything that the referee calls. */
export interface FixtureServer {
  readonly url: string
  close(): Promise<void>
}

const INFO = { name: 'conformance-fixture', version: '1.0.0' }
const LISTS = { listChanged: true }
const CAPABILITIES = {
  tools: LISTS,
  prompts: LISTS,
  resources: { subscribe: true, ...LISTS },
  completions: {},
  logging: {},
}

/** Answers a method of either era. Returns `undefined` for an unknown one. */
function answer(method: string, params: Json, turn: Turn): Json | Promise<Json> | undefined {
  switch (method) {
    case 'tools/list':
      return { tools: toolsOf(turn.era).map(toListed) }
    case 'tools/call':
      return callTool(String(params['name']), turn)
    case 'resources/list':
      return { resources: RESOURCES }
    case 'resources/templates/list':
      return { resourceTemplates: TEMPLATES }
    case 'resources/read':
      return read(String(params['uri']), turn.era)
    case 'prompts/list':
      return { prompts: promptsOf(turn.era) }
    case 'prompts/get':
      return getPrompt(String(params['name']), turn)
    case 'completion/complete':
      return complete(params)
    case 'resources/subscribe':
    case 'resources/unsubscribe':
    case 'logging/setLevel':
      return turn.era === 'legacy' ? {} : undefined
    default:
      return undefined
  }
}

/** Starts the fixture on SDK 1.x: sessions, and requests to the client over the stream of a call. */
export function startEarlierFixture(): Promise<FixtureServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  return listen(
    async (request, response) => {
      const id = request.headers['mcp-session-id']
      const known = typeof id === 'string' ? transports.get(id) : undefined
      if (known) return known.handleRequest(request, response)
      if (id !== undefined) return void response.writeHead(404).end()
      const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => void transports.set(session, transport),
        onsessionclosed: (session) => void transports.delete(session),
      })
      await createEarlierServer().connect(transport as Parameters<EarlierServer['connect']>[0])
      return transport.handleRequest(request, response)
    },
    async () => {
      for (const transport of transports.values()) await transport.close()
    },
  )
}

function createEarlierServer(): EarlierServer {
  const server = new EarlierServer(INFO, { capabilities: CAPABILITIES })
  server.fallbackRequestHandler = async ({ method, params = {} }, extra) => {
    const turn: Turn = {
      era: 'legacy',
      args: (params['arguments'] ?? {}) as Json,
      progressToken: extra._meta?.progressToken,
      capabilities: (server.getClientCapabilities() ?? {}) as Json,
      responses: undefined,
      state: undefined,
      notify: (name, given) => extra.sendNotification({ method: name, params: given } as never),
      log: (level, data) =>
        extra.sendNotification({ method: 'notifications/message', params: { level, data } } as never),
      ask: (name, given) => extra.sendRequest({ method: name, params: given } as never, ResultSchema),
      change: (kind) => void server.notification({ method: `notifications/${kind}/list_changed` }),
    }
    try {
      const result = await answer(method, params as Json, turn)
      if (result === undefined) throw new McpError(ErrorCode.MethodNotFound, 'Method not found')
      return result
    } catch (error) {
      throw error instanceof Rejected
        ? Object.assign(new Error(error.message), { code: error.code, data: error.data })
        : error
    }
  }
  return server
}

const MODERN_METHODS = [
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
  'completion/complete',
] as const

/** Starts the fixture on SDK 2.4: MCP 2026-07-28 alone. */
export async function startModernFixture(): Promise<FixtureServer> {
  const handler = createMcpHandler(() => createModernServer(), { legacy: 'reject' })
  const change: Turn['change'] = (kind) =>
    kind === 'tools' ? handler.notify.toolsChanged() : handler.notify.promptsChanged()
  const handle = toNodeHandler(handler)
  return listen(
    (request, response) => handle(request as NodeIncomingMessageLike, response),
    () => handler.close(),
  )

  function createModernServer(): Server {
    const server = new Server(INFO, { capabilities: CAPABILITIES })
    for (const method of MODERN_METHODS)
      server.setRequestHandler(method, async ({ params = {} }, context) => {
        try {
          return (await answer(method, params as Json, toTurn(params as Json, context, change))) as never
        } catch (error) {
          throw error instanceof Rejected ? new ProtocolError(error.code, error.message, error.data) : error
        }
      })
    return server
  }
}

function toTurn(params: Json, { mcpReq }: ServerContext, change: Turn['change']): Turn {
  const envelope = mcpReq.envelope as Json | undefined
  return {
    era: 'modern',
    args: (params['arguments'] ?? {}) as Json,
    progressToken: mcpReq._meta?.progressToken,
    capabilities: (envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Json,
    responses: mcpReq.inputResponses as Json | undefined,
    state: mcpReq.requestState(),
    notify: (method, given) => mcpReq.notify({ method, params: given }),
    log: (level, data) => mcpReq.log(level as 'info', data),
    ask: () => Promise.reject(new Error('A server of this revision does not ask during a call.')),
    change,
  }
}

type Serve = (request: IncomingMessage, response: ServerResponse) => unknown

/** Serves on loopback, and only requests that name loopback: the referee tries DNS rebinding. */
async function listen(serve: Serve, end: () => Promise<void>): Promise<FixtureServer> {
  const server = createServer((request, response) => {
    const { host = '', origin } = request.headers
    const local = [host, origin === undefined ? host : origin.replace(/^https?:\/\//, '')]
    if (!local.every((one) => /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(one)))
      return void response.writeHead(403).end()
    serve(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      await end()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
