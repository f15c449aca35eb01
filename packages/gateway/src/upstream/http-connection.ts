import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '@toolgate/core/internal'
import {
  ACKNOWLEDGE_MS,
  announcesChanges,
  createSubscription,
  keepListening,
  LISTEN,
  LISTEN_PARAMS,
  type Listening,
  type StreamEnd,
} from './announcements.ts'
import {
  abortedError,
  type Connection,
  type ConnectOptions,
  type Handshake,
  type RequestOptions,
} from './connection.ts'
import { type CallHost, HttpCall, HttpEndpoint, modernHeaders, type Received, type Session } from './http-call.ts'
import { answerError, type HttpAnswer, type HttpRequest, SessionLost, StatusError } from './http-exchange.ts'
import { clip, parseMessages, type ServerMessage, toRefusal } from './json-rpc.ts'
import { DISCOVER, discover, encodeRequest, initialize, MODERN_VERSION } from './protocol.ts'
import { UpstreamError } from './upstream.ts'

const CHECK_TIMEOUT_MS = 5_000
const GOODBYE_MS = 300
const SESSION_ID = /^[\x21-\x7E]{1,1024}$/

interface HttpOptions extends ConnectOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Whether a session is closed at the end. A child that is ended anyway needs no such request. */
  readonly goodbye: boolean
}

/**
 * Connects to a server over Streamable HTTP.
 *
 * `auto` asks for MCP 2026-07-28 first and falls back to `initialize` where the
 * server shows no sign of it.
 *
 * @throws {UpstreamError} when the handshake fails
 */
export async function connectHttp(options: HttpOptions): Promise<Connection> {
  const { signal } = options
  const endpoint = new HttpEndpoint(options.url, options.headers)
  const connection = new HttpConnection(endpoint, options)
  const onStopped = () => void endpoint.close(abortedError(signal))
  signal.addEventListener('abort', onStopped)
  try {
    const handshake = await connection.open()
    return {
      ...handshake,
      request: (method, params, asked) => connection.request(method, params, asked),
      close: () => connection.close(),
    }
  } catch (error) {
    await endpoint.close()
    throw error
  } finally {
    signal.removeEventListener('abort', onStopped)
  }
}

class HttpConnection implements CallHost {
  readonly endpoint: HttpEndpoint
  readonly #options: HttpOptions
  readonly #closing = new AbortController()
  #session: Session
  /** The session in which the server last answered a request. */
  #proven: Session | undefined
  #renewing: Promise<void> | undefined
  #listening: Listening | undefined
  #nextId = 1
  #isConnected = false
  #isChecking = false

  constructor(endpoint: HttpEndpoint, options: HttpOptions) {
    this.endpoint = endpoint
    this.#options = options
    this.#session = endpoint.bareSession('legacy')
  }

  /** Makes the handshake and opens the stream of announcements. */
  async open(): Promise<Handshake> {
    const handshake = await this.#shakeHands()
    this.#isConnected = true
    if (!announcesChanges(handshake)) return handshake
    const listening = this.#listen(this.#session)
    // A change between the reading of the list and the first stream would be missed.
    if (this.#session.era === 'modern')
      await Promise.race([listening.begun, sleep(ACKNOWLEDGE_MS, undefined, { ref: false })])
    return handshake
  }

  async request(method: string, params: JsonObject, asked: RequestOptions): Promise<JsonObject> {
    const used = this.#session
    try {
      return (await this.#send(used, method, params, asked)).result
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error
    }
    await this.#renew(used)
    // A server that does not know the session has not looked at the request: sending it again cannot run it twice.
    return (await this.#send(this.#session, method, params, asked)).result
  }

  async close(): Promise<void> {
    const wasConnected = this.#isConnected
    const { id, headers } = this.#session
    this.#isConnected = false
    this.#stop()
    if (wasConnected && this.#options.goodbye && id !== undefined) {
      const goodbye = this.endpoint.exchange({ method: 'DELETE', headers })
      await Promise.race([goodbye.answer.catch(ignore), sleep(GOODBYE_MS, undefined, { ref: false })])
    }
    await this.endpoint.close(new UpstreamError('upstream_down', 'was stopped'))
  }

  onMessage(message: ServerMessage, session: Session): void {
    const { hooks } = this.#options
    if (message.kind === 'notification') {
      if (message.method === 'notifications/tools/list_changed') hooks.onListChanged()
      return
    }
    hooks.log('warn', 'sent a request to its client, which was refused', clip(message.method))
    if (session.era === 'legacy') this.endpoint.post(session, toRefusal(message)).catch(ignore)
  }

  onProven(session: Session): void {
    this.#proven = session
  }

  onBroken(error: UpstreamError): void {
    void this.#check(error)
  }

  #send(session: Session, method: string, params: JsonObject, asked: RequestOptions): Promise<Received> {
    if (asked.signal?.aborted) return Promise.reject(abortedError(asked.signal))
    return new HttpCall(this, session, this.#nextId++, method, asked).send(params, asked)
  }

  async #shakeHands(): Promise<Handshake> {
    const { era, timeoutMs, signal } = this.#options
    if (era === 'legacy') return this.#openSession({ timeoutMs, signal })
    this.#session = this.endpoint.bareSession('modern')
    const handshake = await this.#probe()
    if (handshake) return handshake
    if (era === 'modern') throw new UpstreamError('upstream_protocol', `does not speak MCP ${MODERN_VERSION}`)
    return this.#openSession({ timeoutMs, signal })
  }

  /** Returns `undefined` for a server that speaks an earlier revision. */
  async #probe(): Promise<Handshake | undefined> {
    const { timeoutMs, signal } = this.#options
    try {
      return await discover((method, params) => this.request(method, params, { timeoutMs, signal }))
    } catch (error) {
      if (error instanceof StatusError && saysNothingOfEras(error.status)) return undefined
      throw error
    }
  }

  async #openSession(asked: RequestOptions): Promise<Handshake> {
    const bare = this.endpoint.bareSession('legacy')
    let id: string | undefined
    const handshake = await initialize(async (method, params) => {
      const { result, sessionId } = await this.#send(bare, method, params, asked)
      id = sessionId
      return result
    })
    if (id !== undefined && !SESSION_ID.test(id))
      throw new UpstreamError('upstream_protocol', 'gave a session id that is not visible ASCII')
    this.#session = this.endpoint.legacySession(handshake.protocolVersion, id)
    await this.endpoint.post(this.#session, { jsonrpc: '2.0', method: 'notifications/initialized' })
    return handshake
  }

  /** Makes a new handshake, once for all requests that lost the same session. A session that never worked is not renewed. */
  async #renew(lost: Session): Promise<void> {
    if (lost !== this.#session) return
    if (lost !== this.#proven) {
      const error = new UpstreamError('upstream_down', 'does not know the session that it gave')
      this.#fail(error)
      throw error
    }
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined))
    await this.#renewing
  }

  async #renewOnce(): Promise<void> {
    const { hooks, timeoutMs } = this.#options
    try {
      const handshake = await this.#openSession({ timeoutMs, signal: this.#closing.signal })
      hooks.log('info', 'had lost the session and was given a new one')
      hooks.onRenewed(handshake)
      hooks.onListChanged()
      if (announcesChanges(handshake)) this.#listen(this.#session)
    } catch (error) {
      this.#fail(UpstreamError.from(error))
      throw new UpstreamError('upstream_down', 'lost its session', { cause: error })
    }
  }

  /** Keeps the stream open on which a server announces changes, as long as its session lives. */
  #listen(session: Session): Listening {
    this.#listening?.stop()
    this.#listening = keepListening({
      open: (stopped, onOpen) =>
        session.era === 'modern'
          ? this.#subscribe(session, stopped, onOpen)
          : this.#openStream(session, stopped, onOpen),
      onGap: this.#options.hooks.onListChanged,
    })
    return this.#listening
  }

  async #openStream(session: Session, stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    onOpen()
    const onEvent = (data: string) => this.#onAnnounced(data, session)
    const answer = await this.#follow({ method: 'GET', headers: session.headers }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    if (answer instanceof UpstreamError) return { again: await this.#check(answer) }
    const { status, contentType, retryMs } = answer
    if (status === 200 && contentType === 'text/event-stream') return { again: true, retryMs }
    // These statuses mean that the session is lost, or only that there is no such stream. A ping finds out.
    if (session.id !== undefined && (status === 404 || status === 400))
      await this.request('ping', {}, { timeoutMs: CHECK_TIMEOUT_MS }).catch(ignore)
    return { again: false, retryMs }
  }

  async #subscribe(session: Session, stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    const id = this.#nextId++
    const subscription = createSubscription(onOpen)
    let ended: StreamEnd | undefined
    const take = (text: string) => {
      for (const message of parseMessages(text)) {
        if (message.kind === 'notification') subscription.onNotification(message.method, message.params)
        if (message.kind === 'error') ended = subscription.end(message.error.code)
      }
    }
    const onEvent = (data: string) => {
      take(data)
      this.#onAnnounced(data, session)
    }
    const headers = modernHeaders(session, LISTEN, LISTEN_PARAMS)
    const body = encodeRequest('modern', id, LISTEN, LISTEN_PARAMS, { progress: false })
    const answer = await this.#follow({ method: 'POST', headers, body }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    if (answer instanceof UpstreamError) return { again: await this.#check(answer) }
    if (answer.status === 200 && answer.contentType === 'application/json') take(answer.text)
    if (ended || answer.contentType === 'text/event-stream')
      return { ...(ended ?? subscription.end()), retryMs: answer.retryMs }
    const code = answerError(answer, { id, inSession: false }).rpc?.code
    return code === undefined ? { again: answer.status === 429 || answer.status >= 500 } : subscription.end(code)
  }

  #onAnnounced(text: string, session: Session): void {
    for (const message of parseMessages(text))
      if (message.kind === 'notification' || message.kind === 'request') this.onMessage(message, session)
  }

  #follow(
    request: Omit<HttpRequest, 'path'>,
    onEvent: (data: string) => void,
    stopped: AbortSignal,
  ): Promise<HttpAnswer | UpstreamError> {
    const stream = this.endpoint.exchange(request, onEvent)
    stopped.addEventListener('abort', stream.abort, { once: true })
    return stream.answer.catch(UpstreamError.from).finally(() => stopped.removeEventListener('abort', stream.abort))
  }

  /**
   * Asks a server that broke a connection whether it still answers, as one broken connection does not mean a dead server.
   * Returns whether the connection goes on.
   */
  async #check(reason: UpstreamError): Promise<boolean> {
    if (!this.#isConnected || this.#isChecking) return this.#isConnected
    this.#isChecking = true
    try {
      const method = this.#session.era === 'modern' ? DISCOVER : 'ping'
      await this.request(method, {}, { timeoutMs: CHECK_TIMEOUT_MS })
    } catch (thrown) {
      const error = UpstreamError.from(thrown)
      // Any answer will do, a refusal too.
      if (error.code !== 'upstream_rpc') this.#fail(error.code === 'upstream_timeout' ? reason : error)
    } finally {
      this.#isChecking = false
    }
    return this.#isConnected
  }

  #fail(error: UpstreamError): void {
    if (!this.#isConnected) return
    this.#isConnected = false
    this.#stop()
    this.#options.hooks.onLost(error)
  }

  #stop(): void {
    this.#closing.abort()
    this.#listening?.stop()
  }
}

/** Old servers answer so to what they do not know. A refusal, a fault or a redirect means something else. */
function saysNothingOfEras(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 403
}

function ignore(): undefined {
  return undefined
}
