import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Pages } from '../../heart/route.ts'
import type { RequestSource } from '../../util/client-address.ts'

/**
 * Returns the handler of the API under `/api`, and of the pages at other paths. The page with the longest matching path
 * answers.
 */
export function createPages(
  api: Pick<Pages, 'fetch'>,
  pages: readonly Pages[],
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const longestFirst = pages.toSorted((a, b) => b.under.length - a.under.length)
  const answer = (request: Request, { incoming }: { readonly incoming: RequestSource }) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/api' || pathname.startsWith('/api/')) return api.fetch(request, incoming)
    const found = longestFirst.find(({ under }) => pathname.startsWith(under))
    return found ? found.fetch(request, incoming) : new Response('Not found.\n', { status: 404 })
  }
  // The port itself reads the rest of a body after an early answer.
  const listener = getRequestListener(answer, { autoCleanupIncoming: false })
  return async (request, response) => {
    await listener(request, response)
  }
}
