import type { IncomingMessage } from 'node:http'

/** Returns a request without its body: its sender, and what it asks for. */
export function toRequest({ headers, method, url = '/' }: IncomingMessage): Request {
  const sent = new Headers()
  for (const name of ['host', 'origin', 'authorization', 'cookie']) {
    const value = headers[name]
    if (typeof value === 'string') sent.set(name, value)
  }
  return new Request(new URL(url, 'http://gateway'), { headers: sent, method: method === 'POST' ? 'POST' : 'GET' })
}
