import { recordGatewayCall } from './gateway.ts'

await recordGatewayCall((name) => ({
  headers: {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: { path: '/workspace/a.txt' } },
  }),
}))
