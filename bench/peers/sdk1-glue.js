import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { readBody } from '../wire.js'

/** A gateway as one writes it with the SDK 1.x: a server for each session, or for each request without one; one client upstream. */
const { PORT, UPSTREAM } = process.env
const info = { name: 'sdk1-glue', version: '1.0.0' }
const upstream = new Client(info)
await upstream.connect(new StreamableHTTPClientTransport(new URL(`${UPSTREAM}/mcp`)))
const sessions = new Map()

async function connect(sessionIdGenerator) {
  const server = new Server(info, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => upstream.listTools(params))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => upstream.callTool(params))
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  })
  await server.connect(transport)
  return transport
}

const server = createServer((request, response) => {
  readBody(request, async (bytes) => {
    const body = bytes.length > 0 ? JSON.parse(bytes) : undefined
    const known = sessions.get(request.headers['mcp-session-id'])
    const transport = known ?? (await connect(body?.method === 'initialize' ? randomUUID : undefined))
    await transport.handleRequest(request, response, body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(Number(PORT), '127.0.0.1')
