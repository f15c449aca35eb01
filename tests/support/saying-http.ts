import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, inputRequired, ProtocolError, Server } from '@modelcontextprotocol/server'

const INPUT = { type: 'object' as const }

/** Starts a server of MCP 2026-07-28 alone, on the SDK. It says something before its result: `log`, `progress`, `ask`, `error`. */
export async function startSayingServer(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const handler = createMcpHandler(sayingServer, { legacy: 'reject' })
  const handle = toNodeHandler(handler)
  const server = createServer((req, res) => void handle(req as NodeIncomingMessageLike, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      await handler.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function sayingServer(): Server {
  const server = new Server({ name: 'saying', version: '1' }, { capabilities: { tools: {}, logging: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: ['log', 'progress', 'ask', 'error'].map((name) => ({ name, inputSchema: INPUT })),
  }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }, { mcpReq }) => {
    const said = String(args['text'])
    const answer = { content: [{ type: 'text' as const, text: 'ok' }] }
    if (name === 'log') await mcpReq.log('error', { note: said })
    if (name === 'progress') {
      const params = { progressToken: mcpReq._meta?.progressToken ?? 0, progress: 1, message: said }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
    if (name === 'error') throw new ProtocolError(-32_050, 'no', { note: said })
    if (name !== 'ask' || mcpReq.inputResponses) return answer
    const params = { message: said, requestedSchema: { type: 'object' as const, properties: {} } }
    return inputRequired({ inputRequests: { one: { method: 'elicitation/create', params } } })
  })
  return server
}
