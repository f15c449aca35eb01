import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** An MCP server over HTTP that answers its handshake when the test says so. */
export interface HeldServer {
  readonly url: string
  /** Resolves when a gateway has asked for the handshake. */
  readonly asked: Promise<void>
  /** Answers handshakes from now on; with `fails` by an error. */
  release(how?: 'fails'): void
  close(): Promise<void>
}

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, prompts: {} },
    serverInfo: { name: 'held', version: '1' },
  },
  'tools/list': { tools: ['open', 'secret'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
  'prompts/list': { prompts: [{ name: 'ask' }] },
  'tools/call': { content: [{ type: 'text', text: 'done' }] },
}

export async function startHeldServer(): Promise<HeldServer> {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<'fails' | undefined>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method } = JSON.parse(await text(request)) as { readonly id?: number; readonly method: string }
    asked.resolve()
    if ((await released.promise) === 'fails') return response.writeHead(500).end()
    if (id === undefined) return response.writeHead(202).end()
    const body = { jsonrpc: '2.0', id, result: RESULTS[method] ?? {} }
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  const http = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    asked: asked.promise,
    release: (how) => released.resolve(how),
    async close() {
      released.resolve('fails')
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}
