import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  SetLevelRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

/** A server of 2025-11-25 whose one tool returns the levels of log messages that it was asked for, after a moment. */
const levels: string[] = []
const server = new Server({ name: 'logging', version: '1' }, { capabilities: { tools: {}, logging: {} } })
server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
  levels.push(params.level)
  return {}
})
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{ name: 'levels', inputSchema: { type: 'object' as const } }],
}))
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
  await new Promise((resolve) => setTimeout(resolve, Number(params.arguments?.['ms'] ?? 0)))
  return { content: [{ type: 'text' as const, text: levels.join(' ') }] }
})
await server.connect(new StdioServerTransport())
