import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkOrigin, type OriginRules } from '../auth/origin.ts'

/** The headers of an answer that clients read, besides those that every page may read. */
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, Retry-After'
/** How long a browser may remember the answer to a preflight, in seconds. */
const MAX_AGE = '7200'
const TOKENS = /[\w!#$%&'*+.^`|~-]+/g

/**
 * Lets the pages of `listen.corsOrigins` call an agent endpoint (Fetch standard, "CORS protocol"). Cookies are never
 * allowed, so a page sends a key that it has itself. Returns `true` if it has answered a preflight.
 *
 * The endpoint checks `Host` and `Origin` itself: this adds headers, and grants nothing.
 */
export function answerCors(request: IncomingMessage, response: ServerResponse, rules: OriginRules): boolean {
  const { origin, host } = request.headers
  response.setHeader('vary', 'Origin')
  if (origin === undefined || !rules.pages.has(origin) || checkOrigin({ host }, rules)) return false
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', EXPOSED)
  if (!isPreflight(request)) return false
  // A page on the internet asks before it calls a gateway on this machine or in this network.
  if (request.headers['access-control-request-private-network'] === 'true')
    response.setHeader('access-control-allow-private-network', 'true')
  answerPreflight(request, response, 'GET, POST, DELETE')
  return true
}

/** Lets any page read a public document. Returns `true` if it has answered a preflight. */
export function answerPublicCors(request: IncomingMessage, response: ServerResponse): boolean {
  response.setHeader('access-control-allow-origin', '*')
  if (!isPreflight(request)) return false
  answerPreflight(request, response, 'GET')
  return true
}

function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/** Allows the headers that the page asks for, since arguments of tools have headers of their own (`Mcp-Param-…`). */
function answerPreflight({ headers }: IncomingMessage, response: ServerResponse, methods: string): void {
  const asked = (headers['access-control-request-headers'] ?? '').match(TOKENS) ?? []
  response.setHeader('access-control-allow-methods', methods)
  if (asked.length > 0) response.setHeader('access-control-allow-headers', asked.join(', '))
  response.setHeader('access-control-max-age', MAX_AGE)
  response.writeHead(204).end()
}
