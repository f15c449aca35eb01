import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { RPC_CODES } from '@toolgate/mcp'
import { AskedClients, type AskedRequest } from './asked-clients.ts'
import { announcedLists, changedList, listenTo, RESOURCE_UPDATED } from './announcements.ts'
import type { RequestCredential } from './credential.ts'
import {
  abortedError,
  type Connection,
  type ConnectOptions,
  type Handshake,
  type RequestOptions,
} from './connection.ts'
import { type AnnouncementsHost, HttpAnnouncements } from './http-announcements.ts'
import { type CallHost, HttpCall, type Received } from './http-call.ts'
import type { Outbound } from './http-connections.ts'
import { HttpEndpoint, type Session } from './http-endpoint.ts'
import {
  isAboutSession,
  isOfProxy,
  isSameRefusal,
  mayBeGone,
  mayEndSession,
  SessionLost,
  StatusError,
} from './http-errors.ts'
import { explainHandshake } from './http-sse.ts'
import { clip, type ServerMessage } from './json-rpc.ts'
import { DISCOVER, discover, handshakeCapabilities, initialize, MODERN_VERSION } from './protocol.ts'
import { UpstreamError } from '../../model/upstream.ts'

const CHECK_TIMEOUT_MS = 5_000
const GOODBYE_MS = 300
const SESSION_ID = /^[\x21-\x7E]{1,4096}$/

interface HttpOptions extends ConnectOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** The credential of each request, if it may change. */
  readonly credential?: RequestCredential | undefined
  readonly outbound?: Outbound | undefined
  /** Whether to end the session on close. A child process that is stopped anyway does not need it. */
  readonly goodbye: boolean
}

/**
 * Connects to a server over Streamable HTTP.
 *
 * `auto` tries MCP 2026-07-28 first and falls back to `initialize` if the server
 * does not support it.
 *
 * @throws {UpstreamError} when the handshake fails
 */
export async function connectHttp(options: HttpOptions): Promise<Connection> {
  const { signal, credential, outbound } = options
  const endpoint = new HttpEndpoint(options.url, options.headers, { credential, ...outbound })
  const connection = new HttpConnection(endpoint, options)
  const onStopped = () => void endpoint.close(abortedError(signal))
  signal.addEventListener('abort', onStopped)
  try {
    const handshake = await connection.open()
    return {
      ...handshake,
      request: connection.request,
      ...(handshake.era === 'modern' && { watch: (uris: readonly string[]) => connection.watch(uris) }),
      close: () => connection.close(),
    }
  } catch (error) {
    const explained = await explainHandshake(UpstreamError.from(error), endpoint, signal)
    await endpoint.close()
    throw explained
  } finally {
    signal.removeEventListener('abort', onStopped)
  }
}

class HttpConnection implements CallHost, AnnouncementsHost {
  readonly endpoint: HttpEndpoint
  readonly clients = new AskedClients((method, why) =>
    this.#options.hooks.log('info', `asked for ${method}, which no client got`, why),
  )
  readonly #options: HttpOptions
  readonly #closing = new AbortController()
  readonly #announcements = new HttpAnnouncements(this)
  #session: Session
  #announced: ReturnType<typeof announcedLists> = { lists: [], isDeclared: false }
  readonly proven = new WeakSet<Session>()
  #renewing: Promise<void> | undefined
  #nextId = 1
  #isConnected = false
  #checking: Promise<void> | undefined

  constructor(endpoint: HttpEndpoint, options: HttpOptions) {
    this.endpoint = endpoint
    this.#options = options
    this.#session = endpoint.bareSession('legacy')
  }

  /** Performs the handshake and opens the stream of announcements. */
  async open(): Promise<Handshake> {
    const handshake = await this.#shakeHands()
    this.#isConnected = true
    // Awaited, since a change between the first read of the list and the opening of the stream would be missed.
    await this.#listen(handshake)
    return handshake
  }

  readonly request = async (method: string, params: JsonObject, asked: RequestOptions): Promise<JsonObject> => {
    const used = this.#session
    try {
      return (await this.#send(used, method, params, asked)).result
    } catch (error) {
      if (!(await this.#mayRepeat(UpstreamError.from(error), used, asked))) throw this.#checked(error)
    }
    return this.#send(this.#session, method, params, asked).then(
      ({ result }) => result,
      (error: unknown) => {
        throw this.#checked(error)
      },
    )
  }

  /** Returns an error, after which the server is asked whether it still answers if it may not. */
  #checked(error: unknown): unknown {
    if (error instanceof StatusError && mayBeGone(error.status)) void this.check(error)
    return error
  }

  /**
   * Begins the session again if the server no longer knows it. Returns whether to send the failed request again: it
   * certainly did not run, or may run twice.
   */
  async #mayRepeat(error: UpstreamError, used: Session, { mayRepeat = never }: RequestOptions): Promise<boolean> {
    if (error instanceof SessionLost) {
      await this.#renew(used)
      return true
    }
    if (used.era === 'modern' || !this.#isConnected) return false
    if (error instanceof StatusError && isOfProxy(error.status)) {
      await this.check(error)
      return this.#isConnected && this.#session !== used && mayRepeat()
    }
    // Some servers answer 401 in an unknown session. A credential of a user may have ended instead.
    const isUnauthorized =
      error instanceof StatusError && error.status === 401 && this.endpoint.credential === undefined
    if (!this.proven.has(used) || !(isUnauthorized || isAboutSession(error))) return false
    const refusal = await this.#refusalIn(used)
    if (!refusal || !mayEndSession(refusal)) return false
    await this.#renew(used)
    return isUnauthorized || isSameRefusal(error, refusal) || mayRepeat()
  }

  /** Reopens the stream, with these resources too. */
  async watch(uris: readonly string[]): Promise<void> {
    const { lists, isDeclared } = this.#announced
    if (lists.length + uris.length === 0) return this.#announcements.stop()
    await this.#announcements.listen(this.#session, listenTo(lists, uris), isDeclared || uris.length > 0)
    // Changes between the two streams were not announced.
    this.onGap()
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

  onMessage(message: ServerMessage, session: Session, of?: AskedRequest): void {
    const { hooks } = this.#options
    if (message.kind === 'request') {
      if (session.era === 'modern')
        return hooks.log('warn', 'sent a request to its client, which was ignored', clip(message.method))
      const answering = this.clients.answer(message, of).then((answer) => this.endpoint.post(session, answer))
      return void answering.catch(ignore)
    }
    const { method, params } = message
    const list = changedList(method)
    if (list !== undefined) hooks.onListChanged(list)
    else if (method === RESOURCE_UPDATED) hooks.onResourceUpdated(params['uri'])
    else if (method === 'notifications/message') this.clients.log(params, of)
    else if (method === 'notifications/cancelled') this.clients.cancel(params)
  }

  onBroken(error: UpstreamError): void {
    void this.check(error)
  }

  onGap(): void {
    const { hooks } = this.#options
    hooks.offers.forEach(hooks.onListChanged)
  }

  nextId(): number {
    return this.#nextId++
  }

  async checkSession(session: Session): Promise<void> {
    const refusal = await this.#refusalIn(session)
    if (refusal && mayEndSession(refusal)) await this.#renew(session).catch(ignore)
  }

  /**
   * Asks the server whether it still answers, since one broken connection does not mean a dead server. A session that
   * no longer works is begun again.
   */
  async check(reason: UpstreamError): Promise<boolean> {
    if (!this.#isConnected) return false
    this.#checking ??= this.#checkOnce(reason).finally(() => (this.#checking = undefined))
    await this.#checking
    return this.#isConnected
  }

  async #checkOnce(reason: UpstreamError): Promise<void> {
    const used = this.#session
    let refusal = await this.#refusalIn(used)
    if (refusal && used.era === 'legacy' && this.proven.has(used) && mayEndSession(refusal)) {
      await this.#renew(used).catch(ignore)
      refusal = await this.#refusalIn(this.#session)
    }
    if (refusal && (mayEndSession(refusal) || refusal.code !== 'upstream_rpc'))
      this.#fail(refusal.code === 'upstream_timeout' ? reason : refusal)
  }

  /**
   * Asks for as little as possible. Returns the error if the session does not work. Some servers have no ping: if they
   * refuse it, a list of theirs is asked for.
   */
  async #refusalIn(session: Session): Promise<UpstreamError | undefined> {
    const refusal = await this.#errorOf(session, session.era === 'modern' ? DISCOVER : 'ping')
    if (!refusal || refusal.rpc?.code === RPC_CODES.methodNotFound) return undefined
    const isUnknown = refusal instanceof SessionLost || (refusal instanceof StatusError && !mayBeGone(refusal.status))
    const [list] = this.#options.hooks.offers
    return isUnknown && session.era === 'legacy' && list !== undefined
      ? this.#errorOf(session, `${list}/list`)
      : refusal
  }

  #errorOf(session: Session, method: string): Promise<UpstreamError | undefined> {
    return this.#send(session, method, {}, { timeoutMs: CHECK_TIMEOUT_MS }).then(ignore, UpstreamError.from)
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

  /** Returns `undefined` for a server of an earlier revision. */
  async #probe(): Promise<Handshake | undefined> {
    const { timeoutMs, signal } = this.#options
    try {
      return await discover((method, params) => this.request(method, params, { timeoutMs, signal }))
    } catch (error) {
      if (error instanceof StatusError && mayBeLegacy(error)) return undefined
      throw error
    }
  }

  async #openSession(asked: RequestOptions): Promise<Handshake> {
    const bare = this.endpoint.bareSession('legacy')
    let id: string | undefined
    const ask = async (method: string, params: JsonObject) => {
      const { result, sessionId } = await this.#send(bare, method, params, asked)
      id = sessionId
      return result
    }
    const handshake = await initialize(ask, handshakeCapabilities(this.#options.may))
    if (id !== undefined && !SESSION_ID.test(id))
      throw new UpstreamError('upstream_protocol', 'gave a session id that is not visible ASCII')
    this.#session = this.endpoint.legacySession(handshake.protocolVersion, id)
    await this.#sayInitialized()
    return { ...handshake, hasSession: id !== undefined }
  }

  async #sayInitialized(): Promise<void> {
    try {
      await this.endpoint.post(this.#session, { jsonrpc: '2.0', method: 'notifications/initialized' })
    } catch (error) {
      // The next request fails too if the session does not work.
      if (!(error instanceof StatusError)) throw error
      this.#options.hooks.log('debug', 'did not accept a notification', error.message)
    }
  }

  /**
   * Performs one new handshake for all requests that lost the same session. A session that never worked is not renewed.
   */
  async #renew(lost: Session): Promise<void> {
    if (lost !== this.#session) return
    if (!this.proven.has(lost)) {
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
      hooks.log('info', 'lost the session and got a new one')
      hooks.onRenewed(handshake)
      this.onGap()
      void this.#listen(handshake)
    } catch (error) {
      this.#fail(UpstreamError.from(error))
      throw new UpstreamError('upstream_down', 'lost its session', { cause: error })
    }
  }

  /** Opens the stream on which the server announces changes, if it supports one. */
  async #listen(handshake: Handshake): Promise<void> {
    const { offers } = this.#options.hooks
    this.#announced = announcedLists(handshake, offers)
    const { lists, isDeclared } = this.#announced
    // A server of an earlier revision announces everything on a single stream.
    const { resources } = handshake.capabilities
    const isOne =
      handshake.era === 'legacy' &&
      offers.includes('resources') &&
      isObject(resources) &&
      resources['subscribe'] === true
    if (lists.length > 0 || isOne) await this.#announcements.listen(this.#session, listenTo(lists), isDeclared)
  }

  #fail(error: UpstreamError): void {
    if (!this.#isConnected) return
    this.#isConnected = false
    this.#stop()
    this.#options.hooks.onLost(error)
  }

  #stop(): void {
    this.#closing.abort()
    this.#announcements.stop()
  }
}

/**
 * Whether an old server may answer an unknown request so. A refusal, a fault or a redirect has another meaning, unless
 * it says that the server expects `initialize`.
 */
function mayBeLegacy(error: StatusError): boolean {
  const { status } = error
  if (status === 401 || status === 403) return false
  return (status >= 400 && status < 500) || status === 501 || (status === 500 && isAboutSession(error))
}

function never(): boolean {
  return false
}

function ignore(): undefined {
  return undefined
}
