import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { Server as EarlierServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ErrorCode, McpError, ResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'

/** An MCP server of a test's own on loopback, on the SDK of either era. */
export interface HostedServer {
  readonly url: string
  /** Announces a change of a list to every client. */
  change(kind: 'tools' | 'prompts' | 'resources'): void
  /** Announces that a resource has changed, to those who subscribed to it. */
  updated(uri: string): void
  close(): Promise<void>
}

export type Json = Readonly<Record<string, unknown>>

/** One request to a fixture server, whichever SDK carries it. */
export interface Turn {
  readonly era: 'legacy' | 'modern'
  readonly args: Json
  readonly progressToken: string | number | undefined
  /** The client's capabilities, as it declared them for this request. */
  readonly capabilities: Json
  /** The answers of a retry (2026-07-28). */
  readonly responses: Json | undefined
  readonly state: string | undefined
  notify(method: string, params: Json): Promise<void>
  log(level: string, data: string): Promise<void>
  /** Asks the client over the stream of its request (earlier revisions). */
  ask(method: string, params: Json): Promise<Json>
  /** Changes a list and announces it. */
  change(kind: 'tools' | 'prompts' | 'resources'): void
  /** Announces that a resource has changed, to those who subscribed to it. */
  updated(uri: string): void
}

/** A JSON-RPC error that a fixture answers. */
export class Rejected extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** Answers a method; `undefined` for an unknown one. */
export type Answer = (method: string, params: Json, turn: Turn) => Json | Promise<Json> | undefined

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Json
}

/** Answers what the SDK has no codec for, such as tasks; `undefined` leaves a message to the SDK. */
export type RawAnswer = (
  message: Message,
  headers: IncomingMessage['headers'],
) => Promise<{ readonly result: Json } | { readonly error: Json } | undefined>

const INFO = { name: 'fixture', version: '1.0.0' }
const LISTS = { listChanged: true }
const CAPABILITIES = {
  tools: LISTS,
  prompts: LISTS,
  resources: { subscribe: true, ...LISTS },
  completions: {},
  logging: {},
}

/** Hosts a server on SDK 1.x: sessions, and requests to the client over the stream of a call. */
export async function hostEarlier(answer: Answer): Promise<HostedServer> {
  const sessions = new Map<string, Session>()
  const change: Turn['change'] = (kind) => {
    for (const { server } of sessions.values())
      void server.notification({ method: `notifications/${kind}/list_changed` })
  }
  const updated: Turn['updated'] = (uri) => {
    for (const { server, subscribed } of sessions.values())
      if (subscribed.has(uri)) void server.notification({ method: 'notifications/resources/updated', params: { uri } })
  }
  const begin = async (): Promise<StreamableHTTPServerTransport> => {
    const subscribed = new Set<string>()
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, { transport, server, subscribed }),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    const server = createEarlierServer(answer, { change, updated, subscribed })
    await server.connect(transport as Parameters<EarlierServer['connect']>[0])
    return transport
  }
  const hosted = await listen(
    async (request, response) => {
      const id = request.headers['mcp-session-id']
      const known = typeof id === 'string' ? sessions.get(id) : undefined
      if (!known && id !== undefined) return void response.writeHead(404).end()
      const transport = known?.transport ?? (await begin())
      return transport.handleRequest(request, response)
    },
    async () => {
      for (const { transport } of sessions.values()) await transport.close()
    },
  )
  return { ...hosted, change, updated }
}

interface Session {
  readonly transport: StreamableHTTPServerTransport
  readonly server: EarlierServer
  readonly subscribed: ReadonlySet<string>
}

function createEarlierServer(
  answer: Answer,
  { change, updated, subscribed }: Pick<Turn, 'change' | 'updated'> & { readonly subscribed: Set<string> },
): EarlierServer {
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
      change,
      updated,
    }
    try {
      const result = await answer(method, params as Json, turn)
      if (result === undefined) throw new McpError(ErrorCode.MethodNotFound, 'Method not found')
      if (method === 'resources/subscribe') subscribed.add(String(params['uri']))
      if (method === 'resources/unsubscribe') subscribed.delete(String(params['uri']))
      return result
    } catch (error) {
      if (!(error instanceof Rejected)) throw error
      throw Object.assign(new Error(error.message), { code: error.code, data: error.data })
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

/** Hosts a server on SDK 2.4: MCP 2026-07-28 alone. */
export async function hostModern(answer: Answer, raw?: RawAnswer): Promise<HostedServer> {
  const handler = createMcpHandler(() => createModernServer(), { legacy: 'reject' })
  const { notify } = handler
  const announce = { tools: notify.toolsChanged, prompts: notify.promptsChanged, resources: notify.resourcesChanged }
  const change: Turn['change'] = (kind) => announce[kind].call(notify)
  const updated: Turn['updated'] = (uri) => notify.resourceUpdated(uri)
  const handle = toNodeHandler(handler)
  const hosted = await listen(
    async (request, response) => {
      if (!raw || request.method !== 'POST') return handle(request as NodeIncomingMessageLike, response)
      const message = JSON.parse(await readText(request)) as Message
      const answered = await raw(message, request.headers)
      if (answered === undefined) return handle(request as NodeIncomingMessageLike, response, message)
      response.writeHead('error' in answered ? 400 : 200, { 'content-type': 'application/json' })
      return response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answered }))
    },
    () => handler.close(),
  )
  return { ...hosted, change, updated }

  function createModernServer(): Server {
    const extensions = raw && { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    const server = new Server(INFO, { capabilities: { ...CAPABILITIES, ...extensions } })
    for (const method of MODERN_METHODS)
      server.setRequestHandler(method, async ({ params = {} }, context) => {
        try {
          return (await answer(method, params as Json, toTurn(params as Json, context, { change, updated }))) as never
        } catch (error) {
          throw error instanceof Rejected ? new ProtocolError(error.code, error.message, error.data) : error
        }
      })
    return server
  }
}

function toTurn(params: Json, { mcpReq }: ServerContext, own: Pick<Turn, 'change' | 'updated'>): Turn {
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
    ...own,
  }
}

type Serve = (request: IncomingMessage, response: ServerResponse) => unknown

/** Serves on loopback, and only requests that name loopback: the referee tries DNS rebinding. */
async function listen(serve: Serve, end: () => Promise<void>): Promise<Pick<HostedServer, 'url' | 'close'>> {
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
