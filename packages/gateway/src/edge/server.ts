import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { ConfigError, ToolgateError } from '@toolgate/core'
import type { ApiFaultCode } from '../model/faults.ts'
import { toJsonText } from '@toolgate/values/json'
import type { GatewayHealth } from '../admin/http/health.ts'
import type { ErrorBody } from '../model/session.ts'
import { checkOrigin, type OriginRules } from '../auth/origin.ts'
import { type Authenticator, isRefused } from '../auth/credential.ts'
import { toNetwork } from '../auth/failed-logins.ts'
import type { ProtectedResources } from '../auth/oauth/protected-resource.ts'
import type { McpEndpoint } from '../mcp/endpoint.ts'
import { sendJson } from '../model/protocol.ts'
import { once } from '../util/lifecycle.ts'
import { answerCors, answerPublicCors } from './cors.ts'
import { type Certificate, CertificateError, readCertificate, type TlsFiles } from '../util/certificate.ts'
import { type ClientAddresses, createClientAddresses } from '../util/client-address.ts'
import { challengeOf, proveIdentity } from '../util/identity.ts'
import { discardRest } from '../model/body.ts'
import type { MetricsEndpoint } from '../admin/metrics/metrics-endpoint.ts'

export interface HttpDeps {
  readonly mcp: McpEndpoint
  /** Returns the endpoint of `/mcp/<app>`. */
  readonly mcpOf: (app: string) => McpEndpoint
  readonly health: GatewayHealth
  /** The secret that proves to local programs which gateway listens. */
  readonly identity?: Uint8Array | undefined
  /** The metadata of the endpoints as OAuth resources, if tokens are accepted. */
  readonly resources?: Pick<ProtectedResources, 'metadata'> | undefined
  readonly authenticator: Authenticator
  readonly origins: OriginRules
  readonly metrics: MetricsEndpoint
  /** Whether another replica forwarded a request after checking its origin. */
  readonly isForwarded: (request: IncomingMessage) => boolean
  /** The API and the console, loaded at the first request for them. */
  readonly pages: () => Promise<(request: IncomingMessage, response: ServerResponse) => Promise<void>>
  /** Answers upgrade requests at `/api/live`. Never rejects. */
  readonly live: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>
  /** Ends open streams before the port is closed. */
  readonly endStreams: () => void
  readonly onFault: (error: unknown) => void
}

export interface Listening {
  readonly port: number
  /** The current certificate. Absent if the gateway listens over HTTP. */
  readonly certificate: Certificate | undefined
  /**
   * Reads the files of the certificate again. Returns a function that starts to use it for new connections, or
   * `undefined` if the certificate is unchanged. Open connections keep the old certificate.
   *
   * @throws {ConfigError}
   */
  readCertificate(): (() => void) | undefined
  close(): Promise<void>
}

/** The time limit for the headers of a request. A slower client is disconnected. */
const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 60_000
const KEEP_ALIVE_MS = 65_000
/** How often both time limits are checked. Node's default of 30 s would be late. */
const CHECK_TIMEOUTS_MS = 1_000
const MAX_CONNECTIONS = 4096
/** The maximum number of connections from one address, so that one client cannot use up all of them. */
const MAX_CONNECTIONS_OF_ADDRESS = 1024
const MAX_HEADER_BYTES = 16 * 1024

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** Addresses of proxies, which carry connections of many clients. */
  readonly proxies?: readonly string[]
  /** The certificate for HTTPS. */
  readonly tls?: TlsFiles
  /** In milliseconds. Default 15 s. */
  readonly headersTimeoutMs?: number
  /** The maximum number of connections from one address. Default 1,024. */
  readonly maxOfAddress?: number
}

/**
 * Opens the port before anything else starts. Every request is answered with 503 until `attach` sets the handlers.
 *
 * @throws {ToolgateError} `port_taken`
 * @throws {ConfigError} for a certificate that cannot be used
 */
export async function listen({
  host,
  port,
  proxies,
  tls,
  headersTimeoutMs = HEADERS_TIMEOUT_MS,
  maxOfAddress = MAX_CONNECTIONS_OF_ADDRESS,
}: ListenOptions): Promise<Listening & { attach(deps: HttpDeps): void }> {
  let route: (request: IncomingMessage, response: ServerResponse) => void = answerStarting
  let live: HttpDeps['live'] | undefined
  let endStreams = () => {}
  let certificate = tls && checkCertificate(tls)
  const server = createServer(certificate, (request, response) => {
    answering.add(request.socket)
    response.once('close', () => answering.delete(request.socket))
    discardRest(request, response)
    if (isTarget(request)) route(request, response)
    else answerFault(response, 400, NO_TARGET)
  })
  boundAddresses(server, maxOfAddress, createClientAddresses(proxies))
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (live && pathOf(request) === '/api/live' && request.method === 'GET') void live(request, socket, head)
    else refuseUpgrade(socket)
  })
  server.on('clientError', refuseMalformed)
  server.headersTimeout = headersTimeoutMs
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.maxConnections = MAX_CONNECTIONS
  const opened = await open(server, host, port)
  return {
    port: opened,
    get certificate() {
      return certificate
    },
    readCertificate() {
      const read = tls && checkCertificate(tls)
      if (read === undefined || read.fingerprint === certificate?.fingerprint) return undefined
      return () => {
        ;(server as TlsServer).setSecureContext({ ...TLS, ...read })
        certificate = read
      }
    },
    attach: (deps) => {
      route = createRouter(deps)
      ;({ live, endStreams } = deps)
    },
    close: once(() => {
      endStreams()
      return close(server)
    }),
  }
}

const TLS = { minVersion: 'TLSv1.2' } as const

function createServer(certificate: Certificate | undefined, listener: RequestListener): Server {
  const options = { maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: CHECK_TIMEOUTS_MS }
  // An import would read every export of node:http, and so load `fetch` too: 30 ms and 13 MB.
  if (!certificate) return process.getBuiltinModule('node:http').createServer(options, listener)
  const { cert, key } = certificate
  const secure = { ...options, ...TLS, cert, key, handshakeTimeout: HEADERS_TIMEOUT_MS }
  return process.getBuiltinModule('node:https').createServer(secure, listener)
}

/** @throws {ConfigError} */
function checkCertificate(files: TlsFiles): Certificate {
  try {
    return readCertificate(files)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new ConfigError(`listen.tls.${error.field}`, error.message, { cause: error })
  }
}

const APPS = '/mcp/'
/** RFC 9728 §3.1: this prefix precedes the path of the resource. */
const RESOURCES = '/.well-known/oauth-protected-resource'

function createRouter({
  mcp,
  mcpOf,
  health,
  identity,
  resources,
  authenticator,
  origins,
  metrics,
  isForwarded,
  pages,
  onFault,
}: HttpDeps): (request: IncomingMessage, response: ServerResponse) => void {
  const answerPages = async (request: IncomingMessage, response: ServerResponse) => {
    const metadata = resources && describeResource(request, resources)
    const foreign = isForwarded(request) ? undefined : checkOrigin({ host: request.headers.host }, origins)
    // The origin is checked before anything is loaded, as the request comes from a foreign page.
    if (foreign) return answerFault(response, 403, { code: 'host_forbidden', message: foreign.message })
    if (isOfResources(request) && answerPublicCors(request, response)) return
    if (metadata) return sendJson(response, toJsonText(metadata), 200, { 'cache-control': 'max-age=300' })
    const answer = await pages()
    await answer(request, response)
  }
  const fail = (response: ServerResponse, error: unknown) => {
    onFault(error)
    response.destroy()
  }
  const prove = ({ headers, socket }: IncomingMessage) =>
    identity && proveIdentity(identity, challengeOf(headers), socket.localPort)
  const serve = (endpoint: McpEndpoint, request: IncomingMessage, response: ServerResponse) => {
    if (origins.pages.size > 0 && answerCors(request, response, origins)) return
    endpoint(request, response).catch((error: unknown) => fail(response, error))
  }
  /** `/mcp/` is `/mcp`, and `/mcp/<app>/` is `/mcp/<app>`: clients add a slash, and nothing else is there. */
  const mcpAt = (path: string) => (path === APPS ? mcp : mcpOf(withoutSlash(path.slice(APPS.length))))
  return (request, response) => {
    const path = pathOf(request)
    switch (path) {
      case '/mcp':
        serve(mcp, request, response)
        break
      case '/healthz':
        answerHealth(response, health.healthz(), prove(request))
        break
      case '/readyz':
        mayKnowServers(request, { authenticator, origins })
          .then((withServers) => answerHealth(response, health.readyz({ withServers })))
          .catch((error: unknown) => fail(response, error))
        break
      case '/metrics':
        metrics(request, response).catch((error: unknown) => fail(response, error))
        break
      default:
        if (path.startsWith(APPS)) serve(mcpAt(path), request, response)
        else answerPages(request, response).catch((error: unknown) => fail(response, error))
    }
  }
}

/** Whether a request is about the metadata of an OAuth resource, which is public. */
function isOfResources(request: IncomingMessage): boolean {
  const path = pathOf(request)
  return path === RESOURCES || path.startsWith(`${RESOURCES}/`)
}

/** Returns the metadata of the resource, if the request asks for it. */
function describeResource(
  request: IncomingMessage,
  resources: Pick<ProtectedResources, 'metadata'>,
): object | undefined {
  const path = pathOf(request)
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return isRead && path.startsWith(RESOURCES)
    ? resources.metadata(withoutSlash(path.slice(RESOURCES.length)))
    : undefined
}

/** Removes one slash at the end of a path. */
function withoutSlash(path: string): string {
  return path.replace(/(?<=[^/])\/$/, '')
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? url
}

async function mayKnowServers(
  { headers }: IncomingMessage,
  { authenticator, origins }: Pick<HttpDeps, 'authenticator' | 'origins'>,
): Promise<boolean> {
  if (checkOrigin(headers, origins)) return false
  const credential = await authenticator.authenticate(headers, '/readyz')
  return !isRefused(credential) && credential.for === 'console'
}

/** Whether all parsers read the same path from the request target. */
function isTarget(request: IncomingMessage): boolean {
  const { url = '/' } = request
  if (pathOf(request).includes('\\')) return false
  return url.startsWith('/') ? URL.canParse(url, 'http://gateway') : /^https?:/i.test(url) && URL.canParse(url)
}

const NO_TARGET: ErrorBody['error'] = { code: 'request_malformed', message: 'The target of the request is no URL.' }

function answerFault(response: ServerResponse, status: number, error: ErrorBody['error']): void {
  sendJson(response, JSON.stringify({ error } satisfies ErrorBody), status, {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
}

/** Closes connections from an address that has too many, before reading from them. A proxy may have more. */
function boundAddresses(server: Server, max: number, { isProxy }: Pick<ClientAddresses, 'isProxy'>): void {
  const counts = new Map<string, number>()
  server.on('connection', (socket) => {
    if (isProxy(socket.remoteAddress)) return
    const network = toNetwork(socket.remoteAddress)
    const count = (counts.get(network) ?? 0) + 1
    if (count > max) {
      socket.destroy()
      return
    }
    counts.set(network, count)
    socket.once('close', () => {
      const left = (counts.get(network) ?? 1) - 1
      if (left === 0) counts.delete(network)
      else counts.set(network, left)
    })
  })
}

/** Refuses upgrades to anything but the live socket. */
function refuseUpgrade(socket: Duplex): void {
  socket.on('error', () => socket.destroy())
  socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n', () => socket.destroy())
}

/** The statuses for requests that Node cannot parse. Their bodies are like those of all faults. */
const MALFORMED: ReadonlyMap<string | undefined, readonly [line: string, code: ApiFaultCode, message: string]> =
  new Map([
    ['HPE_HEADER_OVERFLOW', ['431 Request Header Fields Too Large', 'headers_too_large', 'The headers are too large.']],
    ['ERR_HTTP_REQUEST_TIMEOUT', ['408 Request Timeout', 'request_timeout', 'The request took too long.']],
  ])
const NO_REQUEST = ['400 Bad Request', 'request_malformed', 'This is no request of HTTP/1.1.'] as const

/** Connections with an unfinished answer. */
const answering = new WeakSet<Duplex>()

function refuseMalformed({ code }: NodeJS.ErrnoException, socket: Duplex): void {
  // If an answer has begun, nothing can follow it.
  if (!socket.writable || code === 'ECONNRESET' || answering.has(socket)) return void socket.destroy()
  const [line, fault, message] = MALFORMED.get(code) ?? NO_REQUEST
  const body = JSON.stringify({ error: { code: fault, message } })
  const headers = ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`, 'connection: close']
  socket.on('error', () => socket.destroy())
  socket.end([`HTTP/1.1 ${line}`, ...headers, '', body].join('\r\n'), () => socket.destroy())
}

function answerHealth(
  response: ServerResponse,
  { status, body }: { status: number; body: unknown },
  headers: Readonly<Record<string, string>> = {},
): void {
  sendJson(response, toJsonText(body), status, { 'cache-control': 'no-store', ...headers })
}

function answerStarting(_request: IncomingMessage, response: ServerResponse): void {
  sendJson(response, JSON.stringify({ error: { code: 'starting', message: 'The gateway is starting.' } }), 503, {
    'retry-after': '1',
  })
}

function open(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error)
      reject(new ToolgateError('port_taken', `Port ${port} on ${host} is taken by another program.`, { cause: error }))
    })
    server.listen(port, host, () => {
      server.removeAllListeners('error')
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

/** Closes idle connections at once. Running calls get a short time to be answered. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), 500)
    server.close(() => {
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}
