import type { JsonObject } from '@toolgate/values/json'
import type { RequestCredential } from './credential.ts'
import type { Era } from './connection.ts'
import type { AnswerHandler, OpenedConnections, Outbound } from './http-connections.ts'
import { EVENT_STREAM, type HttpAnswer, isSuccess } from './http-answer.ts'
import { StatusError } from './http-errors.ts'
import { HttpExchange, type HttpRequest } from './http-exchange.ts'
import { encode, MODERN_VERSION } from './protocol.ts'
import { pathOfRedirect } from './redirects.ts'

const NOTIFY_TIMEOUT_MS = 5_000
/** Headers that describe the request. The configuration cannot set them. */
const OWN_HEADER = /^(?:accept|connection|content-length|content-type|host|mcp-.*|transfer-encoding)$/

/** The way to send requests. A new handshake replaces a lost legacy session. */
export interface Session {
  readonly era: Era
  readonly id: string | undefined
  /** Alternating names and values, ready to send. */
  readonly headers: readonly string[]
}

/** The Streamable HTTP endpoint of a server, with its kept-alive connections. */
export class HttpEndpoint {
  readonly #pool: HttpPool
  readonly #origin: string
  /** The path and query of the server. It moves with a redirect to the same path with a slash, or without. */
  #path: string
  readonly #headers: readonly string[]
  /** The credential that each request sends, if it can change. A fixed one is in the configured headers. */
  readonly credential: RequestCredential | undefined

  constructor(
    url: URL,
    configured: Readonly<Record<string, string>>,
    { credential, ...outbound }: Outbound & { readonly credential?: RequestCredential | undefined } = {},
  ) {
    this.credential = credential
    this.#pool = new HttpPool(url, outbound)
    this.#origin = url.origin
    this.#path = `${url.pathname}${url.search}`
    const own = Object.entries(configured)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !OWN_HEADER.test(name))
    this.#headers = [...own.flat(), 'content-type', 'application/json', 'accept', 'application/json, text/event-stream']
  }

  /** Returns how requests are sent without a session. */
  bareSession(era: Era): Session {
    const version = era === 'modern' ? ['mcp-protocol-version', MODERN_VERSION] : []
    return { era, id: undefined, headers: [...this.#headers, ...version] }
  }

  legacySession(protocolVersion: string, id: string | undefined): Session {
    const session = id === undefined ? [] : ['mcp-session-id', id]
    return { era: 'legacy', id, headers: [...this.#headers, 'mcp-protocol-version', protocolVersion, ...session] }
  }

  exchange(request: Omit<HttpRequest, 'path'>, onEvent: (data: string) => void = ignore): HttpExchange {
    const authorization = this.credential?.header
    if (authorization === undefined) return new HttpExchange(this.#pool, { ...request, path: this.#path }, onEvent)
    const headers = [...request.headers, 'authorization', authorization]
    // A server may repeat the token, which must not reach the model or a record.
    const secret = authorization.replace(/^Bearer /, '')
    return new HttpExchange(this.#pool, { ...request, headers, path: this.#path }, onEvent, secret)
  }

  /** Returns the URL of a request. */
  urlOf(path: string = this.#path): URL {
    return new URL(path, this.#origin)
  }

  /** Follows a redirect if it moves the server by a slash alone. Returns whether to send the request again. */
  follow(answer: HttpAnswer, path: string | undefined, isRepeatable: boolean): boolean {
    const url = this.urlOf(path)
    const to = pathOfRedirect(answer, { url, isRepeatable })
    if (to !== undefined) this.#path = to
    return to !== undefined
  }

  /** Opens the stream of the server's own messages, and passes its beginning on as it comes. */
  look(handler: AnswerHandler): void {
    const headers = [...this.#headers.slice(0, -2), 'accept', EVENT_STREAM]
    this.#pool.send({ method: 'GET', path: this.#path, headers }, handler)
  }

  /** Sends a notification or the answer to a request of the server. */
  async post(session: Session, message: JsonObject): Promise<void> {
    await this.credential?.prepare()
    const ownHeaders = session.era === 'modern' ? ['mcp-method', String(message['method'])] : undefined
    const sent = this.exchange({ method: 'POST', headers: session.headers, ownHeaders, body: encode(message) })
    const timer = setTimeout(sent.abort, NOTIFY_TIMEOUT_MS)
    const accepted = new Promise<undefined>((resolve) => {
      sent.onHead = (status) => void (isSuccess(status) && resolve(undefined))
    })
    // A server that answers with an event stream may never end it.
    const refused = await Promise.race([sent.answer, accepted]).finally(() => clearTimeout(timer))
    sent.expectEnd()
    if (refused && !isSuccess(refused.status))
      throw new StatusError(refused.status, `answered a notification with HTTP ${refused.status}`)
  }

  async close(reason?: Error): Promise<void> {
    await this.#pool.destroy(reason)
  }
}

/**
 * Kept-alive connections to one origin.
 *
 * undici is loaded for the first of them. A gateway whose servers are all child processes does not need it.
 */
export class HttpPool {
  readonly #opening: Promise<OpenedConnections>
  #closed: Error | undefined

  constructor({ origin }: URL, outbound?: Outbound) {
    this.#opening = import('./http-connections.ts').then(({ openConnections }) => openConnections(origin, outbound))
    // Each request reports why it failed.
    this.#opening.catch(ignore)
  }

  /** Sends a request once. The pool never repeats it after a failure. */
  send({ method, path, headers, ownHeaders = [], body }: HttpRequest, handler: AnswerHandler): void {
    this.#opening
      .then(({ pool, prefix, headers: further }) => {
        if (this.#closed) throw this.#closed
        const sent = [...headers, ...ownHeaders, ...further]
        pool.dispatch({ method, path: `${prefix}${path}`, headers: sent, body: body ?? null }, handler)
      })
      .catch((error: Error) => handler.onResponseError(undefined, error))
  }

  /** Ends all connections. Running and waiting requests fail with the error. */
  async destroy(reason: Error = new Error('was closed')): Promise<void> {
    this.#closed ??= reason
    // Without connections there is nothing to end.
    const opened = await this.#opening.catch(() => undefined)
    await opened?.pool.destroy(reason)
  }
}

function ignore(): undefined {
  return undefined
}
