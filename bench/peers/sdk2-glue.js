import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'

/** A gateway as one writes it with the SDK 2.x: a server for each request, in both eras; one client upstream. */
const { PORT, UPSTREAM } = process.env
const info = { name: 'sdk2-glue', version: '1.0.0' }
const upstream = new Client(info)
await upstream.connect(new StreamableHTTPClientTransport(new URL(`${UPSTREAM}/mcp`)))

const handler = createMcpHandler(() => {
  const server = new Server(info, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', ({ params }) => upstream.listTools(params))
  server.setRequestHandler('tools/call', ({ params }) =>
    upstream.callTool({ name: params.name, arguments: params.arguments }),
  )
  return server
})

const handle = toNodeHandler(handler)
const server = createServer((request, response) => void handle(request, response))
server.keepAliveTimeout = 60_000
server.listen(Number(PORT), '127.0.0.1')
