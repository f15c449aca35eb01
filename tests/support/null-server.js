// An MCP server that writes `null` for every absent member, as some SDKs do. It serves the revision 2025-11-25 on stdio;
// `answerTo(text, 'modern')` answers as a server of 2026-07-28. Some of its items are invalid.
import { createInterface } from 'node:readline'

const NONE = { title: null, description: null, icons: null, _meta: null, annotations: null }
const TOOLS = [
  {
    name: 'bare',
    inputSchema: { type: 'object', properties: null, required: null, $schema: null },
    outputSchema: null,
    execution: null,
    ...NONE,
  },
  {
    name: 'hints',
    ...NONE,
    inputSchema: { type: 'object', properties: { a: { type: 'string', description: null, default: null } } },
    annotations: { title: null, readOnlyHint: null, destructiveHint: false, openWorldHint: null },
    icons: [{ src: 'data:image/png;base64,', mimeType: null, sizes: null, theme: null }],
    execution: { taskSupport: null },
  },
  { name: 'shaped', ...NONE, inputSchema: { type: 'object' }, outputSchema: { type: ['object', 'null'] } },
  { name: 'wrong-title', ...NONE, title: 5, inputSchema: { type: 'object' } },
  {
    name: 'dangling',
    inputSchema: { type: 'object' },
    outputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/gone' } } },
  },
  { name: 'no-input', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/gone' } } } },
  { name: 'n'.repeat(200), inputSchema: { type: 'object' } },
]
const RESOURCES = [
  { uri: 'file:///a', name: 'a', ...NONE, mimeType: null, size: null },
  { uri: 'file:///b', name: 'b', ...NONE, annotations: { audience: null, priority: null, lastModified: null } },
  { uri: 'not a uri', name: 'c' },
]
const PROMPTS = [
  { name: 'plain', ...NONE, arguments: null },
  { name: 'asks', ...NONE, arguments: [{ name: 'who', title: null, description: null, required: null }] },
  { name: 'twice', arguments: [{ name: 'a' }, { name: 'a' }] },
]
const TEXT = { type: 'text', text: 'said', annotations: null, _meta: null }
const RESULTS = {
  'tools/list': { tools: TOOLS, nextCursor: null, _meta: null },
  'resources/list': { resources: RESOURCES, nextCursor: null },
  'resources/templates/list': {
    resourceTemplates: [{ uriTemplate: 'file:///{x}', name: 't', ...NONE, mimeType: null }],
  },
  'prompts/list': { prompts: PROMPTS, nextCursor: null },
  'tools/call': {
    content: [TEXT, { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: null, size: null, ...NONE }],
    isError: null,
    structuredContent: null,
    _meta: null,
  },
  'resources/read': { contents: [{ uri: 'file:///a', mimeType: null, text: 'x', blob: null, _meta: null }] },
  'prompts/get': { description: null, messages: [{ role: 'user', content: TEXT }], _meta: null },
  'completion/complete': { completion: { values: ['v'], total: null, hasMore: null } },
}
const CAPABILITIES = {
  tools: { listChanged: null },
  resources: {},
  prompts: {},
  completions: {},
  logging: null,
  experimental: null,
  tasks: null,
}

/** Returns the text of the answer to a message; `undefined` for a notification. */
export function answerTo(text, era = 'legacy') {
  const { id, method, params } = JSON.parse(text)
  if (id === undefined) return undefined
  const write = (rest) => JSON.stringify({ jsonrpc: '2.0', id, ...rest })
  const result = resultOf(method, params, era)
  if (result === undefined)
    return write({ error: { code: -32601, message: 'Method not found', data: null }, result: null })
  return write({ result: era === 'modern' ? { resultType: 'complete', ...result } : result, error: null, method: null })
}

function resultOf(method, params, era) {
  const [discover, version] = ['server/discover', '2026-07-28']
  if (era === 'modern' && method === discover)
    return {
      supportedVersions: [version],
      capabilities: CAPABILITIES,
      instructions: null,
      _meta: { 'io.modelcontextprotocol/serverInfo': null },
    }
  if (era === 'legacy' && method === 'initialize')
    return {
      protocolVersion: '2025-11-25',
      capabilities: CAPABILITIES,
      serverInfo: { name: 'nulls', version: '1', title: null },
      instructions: null,
    }
  if (method === 'prompts/get' && params.arguments && Object.values(params.arguments).includes(null)) return undefined
  return RESULTS[method]
}

if (process.argv[1] === import.meta.filename)
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = answerTo(line)
    if (answer !== undefined) process.stdout.write(`${answer}\n`)
  }
