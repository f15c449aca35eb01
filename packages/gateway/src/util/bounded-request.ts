import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { LookupFunction, Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { connectionReason } from './connection-reasons.ts'
import { decodeBody } from './decode-body.ts'
import { bareHost, type NamedProxy } from './proxy-rules.ts'
import { openTunnel, ProxyError } from './proxy-tunnel.ts'
import { trustAlso } from './trusted-authorities.ts'

interface BoundedRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** The time limit from the name look-up to the last byte. */
  readonly timeoutMs: number
  readonly maxBytes: number
  /** For an answer whose status matters: reads its body up to `maxBytes` and for at most this time, and drops the rest. */
  readonly peekMs?: number | undefined
  /** Resolves the name of a host that is reached directly. */
  readonly lookup?: LookupFunction | undefined
  /** Reaches the URL through a tunnel. */
  readonly proxy?: NamedProxy | undefined
  /** Certificates (PEM) of authorities that are trusted beside the usual ones. */
  readonly ca?: string | undefined
}

interface BoundedAnswer {
  readonly status: number
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[]
  readonly contentType: string
  readonly bytes: Buffer
}

/** A request failed. The message names the place, without its query, and why. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
}

/**
 * Sends one request, without redirects, on a connection of its own.
 *
 * @throws {RequestFailed} if there is no answer within the bounds; its `cause` is the error of the connection
 */
export async function requestBounded(url: URL, request: BoundedRequest): Promise<BoundedAnswer> {
  const { timeoutMs, proxy, ca } = request
  const place = `${url.origin}${url.pathname}`
  const secureContext = ca === undefined ? undefined : trustAlso(ca)
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new RequestFailed(`${place} did not answer within ${timeoutMs} ms`)),
    timeoutMs,
  )
  // The tunnel has the same limit, and its error says more.
  late.promise.catch(() => undefined)
  let sent: ClientRequest | undefined
  try {
    const tunnel = proxy && (await openTunnel(proxy, url, { timeoutMs, secureContext }))
    sent = open(url, request, secureContext, tunnel)
    return await Promise.race([read(sent, place, request), late.promise])
  } catch (error) {
    if (error instanceof RequestFailed) throw error
    const why = error instanceof ProxyError ? error.message : reachProblem(error)
    throw new RequestFailed(`${place} cannot be reached${why === undefined ? '' : `: ${why}`}`, { cause: error })
  } finally {
    clearTimeout(timer)
    sent?.destroy()
  }
}

function reachProblem(error: unknown): string | undefined {
  const reason = connectionReason(error)
  return reason === undefined ? undefined : `it ${reason}`
}

function open(
  url: URL,
  { method, headers, body, lookup }: BoundedRequest,
  secureContext: SecureContext | undefined,
  tunnel: Socket | undefined,
): ClientRequest {
  const isTls = url.protocol === 'https:'
  const { request } = process.getBuiltinModule(isTls ? 'node:https' : 'node:http')
  const options: RequestOptions & { secureContext?: SecureContext } = {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
    ...(tunnel ? { createConnection: () => (isTls ? secured(url, tunnel, secureContext) : tunnel) } : { agent: false }),
    ...(lookup && { lookup }),
    ...(secureContext && { secureContext }),
  }
  const sent = request(url, options)
  sent.end(body)
  return sent
}

/** Establishes TLS with the host of the URL, whose certificate is checked as without a proxy. */
function secured(url: URL, socket: Socket, secureContext: SecureContext | undefined): Socket {
  const { isIP } = process.getBuiltinModule('node:net')
  const { connect } = process.getBuiltinModule('node:tls')
  const host = bareHost(url.hostname)
  return connect({
    socket,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...(secureContext && { secureContext }),
  })
}

async function read(
  sent: ClientRequest,
  place: string,
  { maxBytes, peekMs }: Pick<BoundedRequest, 'maxBytes' | 'peekMs'>,
): Promise<BoundedAnswer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve)
    sent.on('error', reject)
  })
  const { statusCode: status = 0, rawHeaders, headers } = answer
  const contentType = headers['content-type'] ?? ''
  if (peekMs !== undefined) return { status, rawHeaders, contentType, bytes: await peek(answer, maxBytes, peekMs) }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new RequestFailed(`${place} answered more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  const bytes = decoded(Buffer.concat(chunks), headers['content-encoding'], { place, maxBytes })
  return { status, rawHeaders, contentType, bytes }
}

/** Returns the start of a body, as it came. Never rejects. */
async function peek(answer: IncomingMessage, maxBytes: number, ms: number): Promise<Buffer> {
  const timer = setTimeout(() => answer.destroy(), ms)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= maxBytes) break
    }
  } catch {
    // The rest is not needed.
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}

function decoded(
  bytes: Buffer,
  coding: string | undefined,
  { place, maxBytes }: { readonly place: string; readonly maxBytes: number },
): Buffer {
  try {
    return decodeBody(bytes, coding, maxBytes)
  } catch (cause) {
    throw new RequestFailed(`${place} answered a body that is not ${coding}, or more than ${maxBytes} bytes of it`, {
      cause,
    })
  }
}
