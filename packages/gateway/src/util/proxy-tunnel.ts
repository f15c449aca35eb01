import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { connectionReason } from './connection-reasons.ts'
import { decodedPart, bareHost, type NamedProxy, parseProxy, portOf } from './proxy-rules.ts'

/** A proxy could not be used. Its message says which, without a user or password, and what mends it. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
}

interface TunnelOptions {
  readonly timeoutMs: number
  /** The authorities that may have signed the certificate of a proxy with https. */
  readonly secureContext?: SecureContext | undefined
}

const MAX_HEAD_BYTES = 16 * 1024

/**
 * Opens a connection to the host of a URL through an HTTP proxy, which looks up its name (RFC 9110 §9.3.6).
 *
 * @throws {ProxyError}
 */
export async function openTunnel(proxy: NamedProxy, target: URL, options: TunnelOptions): Promise<Socket> {
  const authority = `${target.hostname}:${portOf(target)}`
  const request = sendConnect(checkedProxy(proxy), authority, options)
  const timer = setTimeout(
    () => request.destroy(new ProxyError(`${shownProxy(proxy)} did not open a connection in time`)),
    options.timeoutMs,
  )
  try {
    const [answer, socket, head] = (await once(request, 'connect')) as [IncomingMessage, Socket, Buffer]
    const { statusCode = 0 } = answer
    if (statusCode >= 200 && statusCode < 300) return resumed(socket, head)
    socket.destroy()
    throw refusal(proxy, authority, statusCode)
  } catch (error) {
    throw brokenProxy(proxy, error)
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the error for a connection to a proxy that failed. */
export function brokenProxy(proxy: NamedProxy, error: unknown): ProxyError {
  if (error instanceof ProxyError) return error
  const reason = connectionReason(error) ?? 'broke the connection'
  return new ProxyError(`${shownProxy(proxy)} ${reason}`, { cause: error })
}

/** Returns the URL of a proxy. @throws {ProxyError} for a proxy of another kind */
export function checkedProxy(proxy: NamedProxy): URL {
  const url = parseProxy(proxy.url)
  if (url) return url
  throw new ProxyError(`the proxy in ${proxy.from} is not one of http or https, such as http://proxy.example.com:3128`)
}

/** Returns the header with the login of a proxy, if it has one. */
export function proxyLogin({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {}
  const login = Buffer.from(`${decodedPart(username)}:${decodedPart(password)}`).toString('base64')
  return { 'proxy-authorization': `Basic ${login}` }
}

/** Returns a text for messages, without a user or password. */
function shownProxy({ url, from }: NamedProxy): string {
  return `the proxy ${parseProxy(url)?.host ?? ''} (${from})`
}

/** Returns the error for an answer of a proxy itself. */
function refusal(proxy: NamedProxy, authority: string, status: number): ProxyError {
  const shown = shownProxy(proxy)
  if (status === 407)
    return new ProxyError(
      `${shown} asked for a login (HTTP 407); write its user and password in the URL of ${proxy.from}`,
    )
  return new ProxyError(`${shown} did not open a connection to ${authority} (HTTP ${status})`)
}

function sendConnect(url: URL, authority: string, { secureContext }: TunnelOptions): ClientRequest {
  // An import of node:http would also load `fetch`: 30 ms and 13 MB.
  const { request } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
  const sent = request({
    host: bareHost(url.hostname),
    port: portOf(url),
    method: 'CONNECT',
    path: authority,
    // Some proxies take a connection that is to be closed at its word.
    headers: { host: authority, connection: 'keep-alive', 'proxy-connection': 'keep-alive', ...proxyLogin(url) },
    agent: false,
    maxHeaderSize: MAX_HEAD_BYTES,
    ...(secureContext && { secureContext }),
  })
  sent.end()
  return sent
}

/** Puts the first bytes of the target back before the others. */
function resumed(socket: Socket, head: Buffer): Socket {
  if (head.length > 0) socket.unshift(head)
  return socket
}
