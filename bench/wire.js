/** What the programs of the gateway figure say to each other in MCP 2026-07-28. */
export const VERSION = '2026-07-28'

export const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'toolgate-bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** The headers of one request, names and values in turn as undici takes them. */
export function toHeaders(method, name, key) {
  const headers = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']
  headers.push('mcp-protocol-version', VERSION, 'mcp-method', method)
  if (name !== undefined) headers.push('mcp-name', name)
  if (key !== undefined) headers.push('authorization', `Bearer ${key}`)
  return headers
}

/** The body of one request. */
export function toBody(id, method, params) {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: MODERN_META } })
}

/** Reads a whole request body. */
export function readBody(request, done) {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
}

export function sendJson(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
