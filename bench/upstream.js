import { createServer } from 'node:http'
import { readBody, sendJson, VERSION } from './wire.js'

/** A minimal MCP server (2026-07-28 and 2025-11-25 over HTTP) with `TOOLS` tools, listening on `PORT`. */
const count = Number(process.env.TOOLS ?? 20)
const shared = {
  resultType: 'complete',
  ttlMs: 60_000,
  cacheScope: 'private',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'bench-upstream', version: '1.0.0' } },
}
const tools = Array.from({ length: count }, (_, i) => ({
  name: `tool_${String(i).padStart(4, '0')}`,
  title: `Tool ${i}`,
  description: `Does the ${i}th of the things that this server can do, to the file at the path it is given.`,
  inputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Where the file is.' },
      head: { type: 'number', description: 'How many lines to read.' },
    },
    required: ['path'],
  },
  annotations: { readOnlyHint: true },
}))
const known = new Set(tools.map(({ name }) => name))

function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return {
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'bench-upstream', version: '1.0.0' },
        },
      }
    case 'ping':
      return { result: {} }
    case 'server/discover':
      return { result: { supportedVersions: [VERSION], capabilities: { tools: {} }, ...shared } }
    case 'tools/list':
      return { result: { tools, ...shared } }
    case 'tools/call':
      return known.has(params?.name)
        ? { result: { content: [{ type: 'text', text: `read ${params.arguments?.path}` }], resultType: 'complete' } }
        : { error: { code: -32602, message: 'Unknown tool' } }
    default:
      return { error: { code: -32601, message: 'Method not found' } }
  }
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') return response.writeHead(405).end()
  return readBody(request, (bytes) => {
    const message = JSON.parse(bytes)
    if (message.id === undefined) return response.writeHead(202).end()
    const said = answer(message)
    const status = said.error && request.headers['mcp-method'] !== undefined ? 404 : 200
    return sendJson(response, JSON.stringify({ jsonrpc: '2.0', id: message.id, ...said }), status)
  })
})
server.keepAliveTimeout = 60_000
server.listen(Number(process.env.PORT), '127.0.0.1', () => process.send?.('ready'))
