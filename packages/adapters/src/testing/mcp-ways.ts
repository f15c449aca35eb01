import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  Client as ClientV2,
  InMemoryTransport as MemoryV2,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InMemoryTransport as MemoryV1 } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, Server as ServerV2 } from '@modelcontextprotocol/server'
import type { Caller, Gate } from '@toolgate/core'
import { guard, type McpGuardOptions, type McpRequest, type McpResult, type SdkServer } from '../mcp.ts'

export const INFO = { name: 'test', version: '1' }

export type ServeOptions = Partial<Omit<McpGuardOptions<SdkServer>, 'server'>>

/** The operations that every client has, with its SDK. */
export interface AnyClient {
  list(): Promise<readonly ({ readonly name: string } & Record<string, unknown>)[]>
  call(
    name: string,
    args?: Record<string, unknown>,
    options?: {
      readonly onProgress?: (progress: { progress: number; total?: number | undefined }) => void
      readonly signal?: AbortSignal
    },
  ): Promise<McpResult>
  /** Returns the number of notices about a changed list. */
  readonly changes: () => number
  close(): Promise<void>
}

/** A guarded server, for clients of its kind. */
interface OpenWay {
  connect(caller: Caller): Promise<AnyClient>
  /** The server's URL. Set over HTTP only. */
  readonly url: string | undefined
  close(): Promise<void>
}

/** One pairing of an SDK's server, a transport and an SDK's client. */
export interface Way {
  readonly name: string
  /** Whether the server outlives a request, so that it can notify its client of changes. */
  readonly tells: boolean
  /** The schema and the structured content of a tool that returns an array. It is an array since 2026-07-28. */
  readonly arrays: readonly [schema: unknown, content: unknown]
  /** Whether the clients can cancel a call. */
  readonly cancels: boolean
  open(gate: Gate, options?: ServeOptions): Promise<OpenWay>
}

export function toCaller({ authInfo }: McpRequest): Caller {
  if (authInfo === undefined) throw new Error('no token')
  return authInfo.extra as Caller
}

const WRAPPED = [
  { type: 'object', properties: { result: { type: 'array' } }, required: ['result'] },
  { result: [1, 2] },
] as const

const NONE = [undefined, undefined] as const

export const WAYS: readonly Way[] = [
  {
    name: 'SDK v2 over HTTP, 2026-07-28',
    tells: false,
    arrays: [{ type: 'array' }, [1, 2]],
    cancels: true,
    open: (gate, options) => openV2(gate, 'auto', options),
  },
  {
    name: 'SDK v2 over HTTP, a client of before',
    tells: false,
    arrays: WRAPPED,
    cancels: false,
    open: (gate, options) => openV2(gate, 'legacy', options),
  },
  { name: 'SDK v2 in memory', tells: true, arrays: WRAPPED, cancels: true, open: openMemoryV2 },
  { name: 'SDK v1 over HTTP, with sessions', tells: true, arrays: NONE, cancels: true, open: openSessionsV1 },
  { name: 'SDK v1 in memory', tells: true, arrays: NONE, cancels: true, open: openMemoryV1 },
]

async function openV2(gate: Gate, mode: 'auto' | 'legacy', options: ServeOptions = {}): Promise<OpenWay> {
  const serve = guard(gate, { server: () => new ServerV2(INFO), caller: toCaller, ...options })
  const handler = createMcpHandler(serve)
  const http = await listen(
    (request, response) => void toNodeHandler(handler)(withAuth(request) as never, response as never),
  )
  return {
    url: http.url,
    connect: (caller) => connectV2(http.url, caller, mode),
    async close() {
      await handler.close()
      await http.close()
    },
  }
}

async function connectV2(url: string, caller: Caller, mode: 'auto' | 'legacy'): Promise<AnyClient> {
  const client = new ClientV2(INFO, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: authOf(caller) } }))
  return fromV2(client)
}

function fromV2(client: ClientV2): AnyClient {
  let changes = 0
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
  return {
    list: async () => (await client.listTools()).tools,
    call: async (name, args = {}, { onProgress, signal } = {}) =>
      client.callTool(
        { name, arguments: args },
        { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) },
      ) as Promise<McpResult>,
    changes: () => changes,
    close: () => client.close(),
  }
}

function fromV1(client: ClientV1): AnyClient {
  let changes = 0
  client.fallbackNotificationHandler = async ({ method }) => {
    if (method === 'notifications/tools/list_changed') changes++
  }
  return {
    list: async () => (await client.request({ method: 'tools/list' }, ListToolsResultSchema)).tools,
    call: async (name, args = {}, { onProgress, signal } = {}) =>
      client.request({ method: 'tools/call', params: { name, arguments: args } }, CallToolResultSchema, {
        ...(onProgress && { onprogress: onProgress }),
        ...(signal && { signal }),
      }) as Promise<McpResult>,
    changes: () => changes,
    close: () => client.close(),
  }
}

async function openMemoryV2(gate: Gate, options: ServeOptions = {}): Promise<OpenWay> {
  return inMemory(async (caller) => {
    const [near, far] = MemoryV2.createLinkedPair()
    const server = guard(gate, { server: () => new ServerV2(INFO), caller, ...options })()
    const client = new ClientV2(INFO)
    await server.connect(far as never)
    await client.connect(near)
    return fromV2(client)
  })
}

async function openMemoryV1(gate: Gate, options: ServeOptions = {}): Promise<OpenWay> {
  return inMemory(async (caller) => {
    const [near, far] = MemoryV1.createLinkedPair()
    const server = guard(gate, { server: () => new ServerV1(INFO), caller, ...options })()
    const client = new ClientV1(INFO)
    await server.connect(far)
    await client.connect(near as never)
    return fromV1(client)
  })
}

function inMemory(connect: (caller: Caller) => Promise<AnyClient>): OpenWay {
  const clients: AnyClient[] = []
  return {
    url: undefined,
    async connect(caller) {
      const client = await connect(caller)
      clients.push(client)
      return client
    },
    close: async () => void (await Promise.all(clients.map((client) => client.close()))),
  }
}

async function openSessionsV1(gate: Gate, options: ServeOptions = {}): Promise<OpenWay> {
  const serve = guard(gate, { server: () => new ServerV1(INFO), caller: toCaller, ...options })
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    })
    await serve().connect(transport as never)
    return transport
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const session = request.headers['mcp-session-id']
    const transport = typeof session === 'string' ? sessions.get(session) : await begin()
    if (transport) await transport.handleRequest(withAuth(request), response)
    else response.writeHead(404).end()
  }
  const http = await listen((request, response) => void answer(request, response))
  return {
    url: http.url,
    async connect(caller) {
      const client = new ClientV1(INFO)
      const transport = new HttpV1(new URL(http.url), { requestInit: { headers: authOf(caller) } })
      await client.connect(transport as never)
      return fromV1(client)
    },
    async close() {
      await Promise.all([...sessions.values()].map((transport) => transport.close()))
      await http.close()
    },
  }
}

export function authOf(caller: Caller): Record<string, string> {
  return { authorization: `Bearer ${Buffer.from(JSON.stringify(caller)).toString('base64url')}` }
}

/** Replaces the host's middleware. In tests, the token is the caller itself. */
export function withAuth(request: IncomingMessage): IncomingMessage & { auth?: never } {
  const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) return request
  const extra = JSON.parse(Buffer.from(token, 'base64url').toString()) as object
  return Object.assign(request, { auth: { token, clientId: 'test', scopes: [], extra } as never })
}

export async function listen(listener: RequestListener): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function textOf({ content = [] }: McpResult): string {
  return content.map((block) => (block as { text?: string }).text ?? '').join('\n')
}

/** Sends a body unchanged. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  })
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': INFO,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Sends a correct request of MCP 2026-07-28. */
export async function askModern(
  url: string,
  caller: Caller | undefined,
  method: string,
  params: { readonly _meta?: object; readonly [field: string]: unknown },
  name?: string,
): Promise<Response> {
  return post(
    url,
    { jsonrpc: '2.0', id: 7, method, params: { ...params, _meta: { ...META, ...params._meta } } },
    {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
      ...(caller && authOf(caller)),
    },
  )
}
