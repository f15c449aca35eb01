import type { IncomingMessage, ServerResponse } from 'node:http'

/** How long to keep reading a body after its request was answered. */
const REST_MS = 1000

/**
 * Discards the rest of a body whose request is answered early, so that a client that is still sending receives the
 * answer. Closing a connection with unread bytes would reset it, and the client's system would drop the answer.
 *
 * The connection is closed if the body does not end within a second.
 */
export function discardRest(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) return
  response.once('finish', () => {
    if (request.complete || request.destroyed) return
    const timer = setTimeout(() => {
      if (!request.complete) request.socket.destroySoon()
    }, REST_MS).unref()
    request.once('close', () => clearTimeout(timer))
    // The handler that answered no longer reads, and would pause the body again.
    request.removeAllListeners('data').resume()
  })
}
