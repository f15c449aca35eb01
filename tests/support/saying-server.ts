// A server of 2025-11-25 on stdio, on the SDK of earlier revisions. It says something before its result, or raises labels with it.
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js'

const inputSchema = { type: 'object' as const }
const server = new Server({ name: 'saying', version: '1' }, { capabilities: { tools: {}, logging: {} } })
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: ['log', 'progress', 'ask', 'sample', 'page', 'error', 'label', 'contact', 'doubtful_contact', 'send'].map(
    (name) => ({ name, inputSchema }),
  ),
}))
server.setRequestHandler(
  CallToolRequestSchema,
  async ({ params: { name, arguments: args = {} } }, { _meta, sendNotification }) => {
    const said = String(args['text'])
    const answer = { content: [{ type: 'text' as const, text: 'ok' }] }
    switch (name) {
      case 'log':
        await server.sendLoggingMessage({ level: 'error', data: { note: said } })
        return answer
      case 'progress':
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta?.progressToken ?? 0, progress: 1, message: said },
        })
        return answer
      case 'ask':
        await server.elicitInput({ message: said, requestedSchema: { type: 'object', properties: {} } })
        return answer
      case 'sample':
        await server.createMessage({
          messages: [{ role: 'user', content: { type: 'text', text: said } }],
          maxTokens: 5,
        })
        return answer
      case 'page':
        throw new UrlElicitationRequiredError([
          { mode: 'url', message: said, url: 'https://login.example.com/x', elicitationId: said },
        ])
      case 'error':
        throw Object.assign(new Error('no'), { code: ErrorCode.InvalidParams, data: { note: said } })
      case 'label':
        return { ...answer, ...args }
      case 'contact':
        return { content: [{ type: 'text', text: 'Bob <bob@acme.example>' }] }
      case 'doubtful_contact':
        return {
          content: [{ type: 'text', text: 'Bob <bob@acme.example>' }],
          _meta: { 'dev.toolgate/labels': ['untrusted'] },
        }
      default:
        return answer
    }
  },
)
await server.connect(new StdioServerTransport())
