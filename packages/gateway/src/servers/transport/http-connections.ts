import type { Socket } from 'node:net'
import type { buildConnector, Client, Dispatcher, Pool } from 'undici'
// All of undici takes 13 MB more than these parts of it.
// @ts-expect-error -- only the root of undici has types
import untypedClient from 'undici/lib/dispatcher/client.js'
// @ts-expect-error -- only the root of undici has types
import untypedPool from 'undici/lib/dispatcher/pool.js'

const ClientClass = untypedClient as typeof Client
const PoolClass = untypedPool as typeof Pool

const MAX_CONNECTIONS = 256
const CONNECT_TIMEOUT_MS = 5_000
const MAX_HEAD_BYTES = 16 * 1024

/** Receives the answer to one request. */
export interface AnswerHandler extends Dispatcher.DispatchHandler {
  /** Closes the connection of the request, even after the answer. The pool sets it. */
  cutConnection?: (() => void) | undefined
  onResponseError(controller: unknown, error: Error): void
}

/**
 * Returns the connections to an origin. They have no timeouts, as a call may be silent for long; callers set timeouts.
 */
export function openConnections(origin: string): Pool {
  return new PoolClass(origin, {
    factory: (url, options) => new KeptConnection(url, options as ConnectionOptions),
    connections: MAX_CONNECTIONS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
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
