import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'

interface Fetches {
  fetch(request: Request, address?: string): Promise<Response>
}

/** Gives the handler of everything but MCP: the API under `/api/`, and the console for the rest. */
export function createPages({
  api,
  console: pages,
}: {
  api: Fetches
  console: Fetches
}): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const listener = getRequestListener((request, { incoming }) => {
    const { pathname } = new URL(request.url)
    return pathname === '/api' || pathname.startsWith('/api/')
      ? api.fetch(request, incoming.socket.remoteAddress)
      : pages.fetch(request)
  })
  return async (request, response) => {
    await listener(request, response)
  }
}
