import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { buildConnector, Client, Dispatcher, Pool } from 'undici'
// All of undici takes 13 MB more than these parts of it.
// @ts-expect-error -- only the root of undici has types
import untypedClient from 'undici/lib/dispatcher/client.js'
// @ts-expect-error -- only the root of undici has types
import untypedPool from 'undici/lib/dispatcher/pool.js'
// @ts-expect-error -- only the root of undici has types
import untypedConnector from 'undici/lib/core/connect.js'
import { type ProxyRules, proxyFor } from '../../util/proxy-rules.ts'
import { brokenProxy, checkedProxy, openTunnel, proxyLogin } from '../../util/proxy-tunnel.ts'
import { trustAlso } from '../../util/trusted-authorities.ts'

const ClientClass = untypedClient as typeof Client
const PoolClass = untypedPool as typeof Pool
const buildUntyped = untypedConnector as typeof buildConnector

const MAX_CONNECTIONS = 256
const CONNECT_TIMEOUT_MS = 5_000
const MAX_HEAD_BYTES = 16 * 1024

/** Receives the answer to one request. */
export interface AnswerHandler extends Dispatcher.DispatchHandler {
  /** Closes the connection of the request, even after the answer. The pool sets it. */
  cutConnection?: (() => void) | undefined
  onResponseError(controller: unknown, error: Error): void
}

/** How requests reach a server. */
export interface Outbound {
  readonly proxy?: ProxyRules | undefined
  /** Certificates (PEM) of authorities that are trusted beside the usual ones. */
  readonly ca?: string | undefined
}

/** Connections to a server, and the parts of each request that its way needs. */
export interface OpenedConnections {
  readonly pool: Pool
  /** Comes before the path: a proxy is asked for whole URLs where there is no TLS (RFC 9112 §3.2.2). */
  readonly prefix: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
}

/**
 * Returns the connections to an origin, through a proxy if there is one for it.
 *
 * @throws {ProxyError} if the proxy is not one of http or https
 */
export function openConnections(origin: string, { proxy: rules, ca }: Outbound = {}): OpenedConnections {
  const target = new URL(origin)
  const proxy = proxyFor(rules, target)
  const secureContext = ca === undefined ? undefined : trustAlso(ca)
  const direct = connectorOf({ ...(secureContext && { secureContext }) })
  if (!proxy) return { pool: openPool(origin, ca === undefined ? undefined : direct), prefix: '', headers: [] }
  const through = checkedProxy(proxy)
  if (target.protocol === 'https:') {
    const tunnel: buildConnector.connector = (to, onSocket) =>
      void openTunnel(proxy, target, { timeoutMs: CONNECT_TIMEOUT_MS, secureContext }).then(
        (httpSocket) => direct({ ...to, httpSocket }, onSocket),
        (error: Error) => onSocket(error, null),
      )
    return { pool: openPool(origin, tunnel), prefix: '', headers: [] }
  }
  // The name in the certificate is that of the proxy, not that of the server.
  const toProxy: buildConnector.connector = (to, done) =>
    direct({ ...to, servername: through.hostname }, (error, socket) =>
      error ? done(brokenProxy(proxy, error), null) : done(null, socket),
    )
  const login = Object.entries(proxyLogin(through)).flat()
  return { pool: openPool(through.origin, toProxy), prefix: origin, headers: ['host', target.host, ...login] }
}

function connectorOf(options: { readonly secureContext?: SecureContext }): buildConnector.connector {
  return buildUntyped({ ...options, timeout: CONNECT_TIMEOUT_MS, allowH2: false })
}

/** Returns connections without timeouts, as a call may be silent for long; callers set timeouts. */
function openPool(origin: string, connect: buildConnector.connector | undefined): Pool {
  return new PoolClass(origin, {
    factory: (url, options) => new KeptConnection(url, options as ConnectionOptions),
    connections: MAX_CONNECTIONS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
    ...(connect && { connect }),
  })
}

/** The options of a pool that has created its connector. */
type ConnectionOptions = Client.Options & { readonly connect: buildConnector.connector }

/** One kept-alive connection with one request at a time. A handler can close it, even after its answer. */
class KeptConnection extends ClientClass {
  #socket: Socket | undefined

  constructor(origin: URL, { connect, ...options }: ConnectionOptions) {
    super(origin, {
      ...options,
      connect: (to, done) =>
        connect(to, (...opened) => {
          this.#socket = opened[1] ?? undefined
          done(...opened)
        }),
    })
  }

  override dispatch(request: Dispatcher.DispatchOptions, handler: AnswerHandler): boolean {
    handler.cutConnection = this.#cut
    return super.dispatch(request, handler)
  }

  /** Closes the connection. The next request opens another one. */
  readonly #cut = (): void => {
    this.#socket?.destroy()
  }
}
