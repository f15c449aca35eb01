import { setTimeout as sleep } from 'node:timers/promises'

import type { ConnectOptions, Connection, Era, Handshake, RequestOptions } from './connection.ts'
import { DISCOVER, discover, initialize } from './handshake.ts'
import { answerError, SessionLost, StatusError } from './http-answer.ts'
import { exchange, type HttpAnswer, type HttpExchange } from './http-exchange.ts'
import {
  clip,
  type JsonObject,
  METHOD_NOT_FOUND,
  notMcp,
  parseMessages,
  type RpcId,
  type RpcMessage,
} from './json-rpc.ts'
import { keepListening, type Listening, REOPEN_MS, reopenMs, type StreamEnd } from './listening.ts'
import { abortedError, createPending, type Pending } from './pending.ts'
import { createPool } from './pool.ts'
import { encode, encodeRequest, MODERN_VERSION, toHeaderValue } from './protocol.ts'
import { rpcError } from './rpc-error.ts'
import { ACKNOWLEDGE_MS, announcesChanges, createSubscription, LISTEN, LISTEN_PARAMS } from './subscription.ts'
import { UpstreamError } from './upstream.ts'

const CHECK_TIMEOUT_MS = 5_000
const NOTIFY_TIMEOUT_MS = 5_000
const GOODBYE_MS = 300
const MAX_RESUMES = 100
/** What stands before a server answers so when the server is gone. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([401, 502, 503, 504])
/** Headers that say what a request is; a configuration cannot set them. */
const OWN_HEADER = /^(?:accept|connection|content-length|content-type|host|mcp-.*|transfer-encoding)$/

/** How requests are sent now. A legacy server that lost it is shaken hands with again, which gives a new one. */
interface Session {
  readonly era: Era
  readonly id: string | undefined
  /** Names and values in turn, ready to be sent. */
  readonly headers: readonly string[]
}

interface HttpOptions extends ConnectOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Whether a session is worth a goodbye: a child that is ended anyway needs none. */
  readonly goodbye: boolean
}

interface Received {
  readonly result: JsonObject
  readonly sessionId: string | undefined
}

/**
 * Speaks MCP with a server over Streamable HTTP.
 *
 * `auto` asks for MCP 2026-07-28 first and falls back to `initialize` where the
 * server shows no sign of it.
 *
 * @throws {UpstreamError} when the server does not shake hands
 */
export async function connectHttp(options: HttpOptions): Promise<Connection> {
  const { hooks, url, timeoutMs, signal } = options
  const pool = createPool(url.origin)
  const path = `${url.pathname}${url.search}`
  const configured = Object.entries(options.headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !OWN_HEADER.test(name))
    .flat()
  const closing = new AbortController()
  let session = bareSession('legacy')
  let nextId = 1
  let connected = false
  let renewing: Promise<void> | undefined
  let checking = false
  /** The session in which the server last answered a request. */
  let proven: Session | undefined
  let listening: Listening | undefined

  const onStopped = () => void pool.destroy(abortedError(signal))
  signal.addEventListener('abort', onStopped)
  try {
    const handshake = await shakeHands()
    connected = true
    if (announcesChanges(handshake)) {
      listen(session)
      // A change between the reading of the list and the first stream would be missed.
      if (session.era === 'modern')
        await Promise.race([listening?.begun, sleep(ACKNOWLEDGE_MS, undefined, { ref: false })])
    }
    return { ...handshake, request, close }
  } catch (error) {
    await pool.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', onStopped)
  }

  async function shakeHands(): Promise<Handshake> {
    if (options.era !== 'legacy') {
      session = bareSession('modern')
      const made = await probe()
      if (made) return made
      if (options.era === 'modern') throw new UpstreamError('upstream_protocol', `does not speak MCP ${MODERN_VERSION}`)
    }
    return openSession({ timeoutMs, signal })
  }

  /** Gives `undefined` for a server that speaks an earlier revision. */
  async function probe(): Promise<Handshake | undefined> {
    try {
      return await discover((method, params) => request(method, params, { timeoutMs, signal }))
    } catch (error) {
      if (error instanceof StatusError && saysNothingOfEras(error.status)) return undefined
      throw error
    }
  }

  async function openSession(asked: RequestOptions): Promise<Handshake> {
    const bare = bareSession('legacy')
    let id: string | undefined
    const handshake = await initialize(async (method, params) => {
      const received = await send(bare, method, params, asked)
      id = received.sessionId
      return received.result
    })
    if (id !== undefined && !/^[\x21-\x7E]{1,1024}$/.test(id)) {
      throw new UpstreamError('upstream_protocol', 'gave a session id that is not visible ASCII')
    }
    session = {
      era: 'legacy',
      id,
      headers: [
        ...bare.headers,
        'mcp-protocol-version',
        handshake.protocolVersion,
        ...(id === undefined ? [] : ['mcp-session-id', id]),
      ],
    }
    await post(session, { jsonrpc: '2.0', method: 'notifications/initialized' })
    return handshake
  }

  function bareSession(era: Era): Session {
    const headers = [...configured, 'content-type', 'application/json', 'accept', 'application/json, text/event-stream']
    return {
      era,
      id: undefined,
      headers: era === 'modern' ? [...headers, 'mcp-protocol-version', MODERN_VERSION] : headers,
    }
  }

  async function request(method: string, params: JsonObject, asked: RequestOptions): Promise<JsonObject> {
    const used = session
    try {
      return (await send(used, method, params, asked)).result
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error
    }
    await renew(used)
    // A server that does not know the session has not looked at the request: sending it again cannot run it twice.
    return (await send(session, method, params, asked)).result
  }

  /** Shakes hands again, once for all who lost the same session. A session that never worked is not worth another. */
  async function renew(lost: Session): Promise<void> {
    if (lost !== session) return
    if (lost !== proven) {
      const error = new UpstreamError('upstream_down', 'does not know the session that it gave')
      fail(error)
      throw error
    }
    renewing ??= renewOnce().finally(() => (renewing = undefined))
    await renewing
  }

  async function renewOnce(): Promise<void> {
    try {
      const handshake = await openSession({ timeoutMs, signal: closing.signal })
      hooks.log('info', 'had lost the session and was given a new one')
      hooks.onRenewed(handshake)
      hooks.onListChanged()
      if (announcesChanges(handshake)) listen(session)
    } catch (error) {
      fail(error as UpstreamError)
      throw new UpstreamError('upstream_down', 'lost its session', { cause: error })
    }
  }

  function send(used: Session, method: string, params: JsonObject, asked: RequestOptions): Promise<Received> {
    if (asked.signal?.aborted) return Promise.reject(abortedError(asked.signal))
    const id = nextId++
    let current: HttpExchange | undefined
    const pending = createPending<Received>(asked, (error) => {
      current?.abort()
      // Going away is how MCP 2026-07-28 cancels; before it, a stream that breaks cancels nothing.
      if (used.era === 'legacy' && method !== 'initialize') void cancel(used, id, error.message)
    })
    const onEvent = (data: string) => {
      receive(data, id, used, pending, () => current?.sessionId())
      if (pending.isSettled()) current?.expectEnd()
    }
    void roundTrip().catch((error: unknown) => {
      pending.reject(error as UpstreamError)
      if (isTransport(error)) void check(error as UpstreamError)
    })
    return pending.promise

    async function roundTrip(): Promise<void> {
      const headers = used.era === 'modern' ? modernHeaders(used, method, params, asked) : used.headers
      const { onProgress, trace } = asked
      trace?.sentAs(id)
      const body = encodeRequest(used.era, id, method, params, {
        progress: onProgress !== undefined,
        meta: trace?.meta,
      })
      current = exchange(pool, { method: 'POST', path, headers, body }, onEvent)
      let answer = await current.answer
      for (let tries = 0; canResume(answer, pending, used) && tries < MAX_RESUMES; tries++) {
        await sleep(reopenMs(answer.retryMs ?? REOPEN_MS), undefined, { ref: false })
        if (pending.isSettled()) return
        current = exchange(pool, resumption(used, answer), onEvent)
        answer = await current.answer
      }
      if (answer.status === 200) proven = used
      if (!pending.isSettled()) conclude(answer, { id, method }, used, pending)
    }
  }

  function modernHeaders(
    used: Session,
    method: string,
    params: JsonObject,
    asked: Pick<RequestOptions, 'paramHeaders'>,
  ): readonly string[] {
    const { name } = params
    return [
      ...used.headers,
      'mcp-method',
      method,
      ...(method === 'tools/call' && typeof name === 'string' ? ['mcp-name', toHeaderValue(name)] : []),
      ...(asked.paramHeaders ?? []),
    ]
  }

  function resumption(used: Session, answer: HttpAnswer): Parameters<typeof exchange>[1] {
    return { method: 'GET', path, headers: [...used.headers, 'last-event-id', answer.lastEventId ?? ''] }
  }

  /** Takes one JSON text of an answer to the request `id`, or of a stream of its own where there is none. */
  function receive(
    text: string,
    id: number | undefined,
    used: Session,
    pending: Pending<Received> | undefined,
    sessionId: () => string | undefined,
  ): void {
    for (const message of parseMessages(text)) {
      if (message.kind === 'notification') onNotification(message, id, pending)
      else if (message.kind === 'request') refuse(message, used, pending)
      else if (message.id !== id) continue
      else if (message.kind === 'result') pending?.resolve({ result: message.result, sessionId: sessionId() })
      else pending?.reject(message.kind === 'error' ? rpcError(message.error) : message.error)
    }
  }

  function onNotification(
    { method, params }: RpcMessage & { kind: 'notification' },
    id: number | undefined,
    pending: Pending<Received> | undefined,
  ): void {
    if (method === 'notifications/tools/list_changed') hooks.onListChanged()
    else if (method === 'notifications/progress' && params['progressToken'] === id) pending?.progress(params)
  }

  function refuse(
    { id, method }: { id: RpcId; method: string },
    used: Session,
    pending: Pending<Received> | undefined,
  ): void {
    hooks.log('warn', 'sent a request to its client, which was refused', clip(method))
    if (used.era === 'legacy') {
      const error = { code: METHOD_NOT_FOUND, message: `${clip(method, 100)} is not supported` }
      void post(used, { jsonrpc: '2.0', id, error }).catch(ignore)
    } else {
      // MCP 2026-07-28 has no way to answer one, so it would wait for ever.
      pending?.reject(new UpstreamError('upstream_protocol', `sent the request ${clip(method, 50)} to its client`))
    }
  }

  /** Ends a request whose answer has ended: with the JSON in it, or in words for what it was instead. */
  function conclude(
    answer: HttpAnswer,
    { id, method }: { readonly id: number; readonly method: string },
    used: Session,
    pending: Pending<Received>,
  ): void {
    const { status, contentType, text } = answer
    if (status === 200 && contentType === 'application/json') {
      receive(text, id, used, pending, () => answer.sessionId)
      if (!pending.isSettled()) pending.reject(notMcp(text))
    } else if (status === 200 && contentType === 'text/event-stream') {
      pending.reject(new UpstreamError('upstream_protocol', 'ended its event stream before it answered'))
    } else {
      const error = answerError(answer, { id, inSession: used.id !== undefined, isProbe: method === DISCOVER })
      pending.reject(error)
      if (GATEWAY_STATUSES.has(status)) void check(error)
    }
  }

  async function post(used: Session, message: JsonObject): Promise<void> {
    const headers = used.era === 'modern' ? [...used.headers, 'mcp-method', String(message['method'])] : used.headers
    const sent = exchange(pool, { method: 'POST', path, headers, body: encode(message) }, ignore)
    const timer = setTimeout(sent.abort, NOTIFY_TIMEOUT_MS)
    const { status } = await sent.answer.finally(() => clearTimeout(timer))
    if (status >= 300) throw new UpstreamError('upstream_protocol', `answered a notification with HTTP ${status}`)
  }

  async function cancel(used: Session, requestId: number, reason: string): Promise<void> {
    const message = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } }
    await post(used, message).catch(ignore)
  }

  /** Keeps open the stream on which a server announces changes, as long as its session lives. */
  function listen(used: Session): void {
    listening?.stop()
    const open = used.era === 'modern' ? subscribe : openStream
    listening = keepListening({ open: (stopped, onOpen) => open(used, stopped, onOpen), onGap: hooks.onListChanged })
  }

  async function openStream(used: Session, stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    onOpen()
    const onEvent = (data: string) => receive(data, undefined, used, undefined, ignore)
    const answer = await follow({ method: 'GET', path, headers: used.headers }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    return { again: await goesOn(answer, used), retryMs: retryMsOf(answer) }
  }

  async function subscribe(used: Session, stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    const id = nextId++
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
      receive(data, undefined, used, undefined, ignore)
    }
    const headers = modernHeaders(used, LISTEN, LISTEN_PARAMS, {})
    const body = encodeRequest('modern', id, LISTEN, LISTEN_PARAMS, { progress: false })
    const answer = await follow({ method: 'POST', path, headers, body }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    if (answer instanceof UpstreamError) return { again: await check(answer) }
    if (answer.status === 200 && answer.contentType === 'application/json') take(answer.text)
    if (ended || answer.contentType === 'text/event-stream')
      return { ...(ended ?? subscription.end()), retryMs: answer.retryMs }
    const code = answerError(answer, { id, inSession: false }).rpc?.code
    return code === undefined ? { again: answer.status === 429 || answer.status >= 500 } : subscription.end(code)
  }

  function follow(
    asked: Parameters<typeof exchange>[1],
    onEvent: (data: string) => void,
    stopped: AbortSignal,
  ): Promise<HttpAnswer | UpstreamError> {
    const stream = exchange(pool, asked, onEvent)
    stopped.addEventListener('abort', stream.abort, { once: true })
    return stream.answer
      .catch((error: unknown) => error as UpstreamError)
      .finally(() => stopped.removeEventListener('abort', stream.abort))
  }

  /** Says whether a stream that ended is worth opening again. */
  async function goesOn(answer: HttpAnswer | UpstreamError, used: Session): Promise<boolean> {
    if (answer instanceof UpstreamError) return check(answer)
    if (answer.status === 200 && answer.contentType === 'text/event-stream') return true
    // These statuses say that the session is lost, or only that there is no such stream: a ping tells.
    if (used.id !== undefined && (answer.status === 404 || answer.status === 400))
      await request('ping', {}, { timeoutMs: CHECK_TIMEOUT_MS }).catch(ignore)
    return false
  }

  /** Asks a server that broke a connection whether it is there at all. One broken connection is no dead server. */
  async function check(reason: UpstreamError): Promise<boolean> {
    if (!connected || checking) return connected
    checking = true
    try {
      await request(session.era === 'modern' ? DISCOVER : 'ping', {}, { timeoutMs: CHECK_TIMEOUT_MS })
    } catch (error) {
      const { code } = error as UpstreamError
      // Any answer will do, a refusal too.
      if (code !== 'upstream_rpc') fail(code === 'upstream_timeout' ? reason : (error as UpstreamError))
    } finally {
      checking = false
    }
    return connected
  }

  function fail(error: UpstreamError): void {
    if (!connected) return
    connected = false
    stop()
    hooks.onLost(error)
  }

  function stop(): void {
    closing.abort()
    listening?.stop()
  }

  async function close(): Promise<void> {
    const wasConnected = connected
    connected = false
    stop()
    if (wasConnected && options.goodbye && session.id !== undefined) {
      const goodbye = exchange(pool, { method: 'DELETE', path, headers: session.headers }, ignore)
      await Promise.race([goodbye.answer.catch(ignore), sleep(GOODBYE_MS, undefined, { ref: false })])
    }
    await pool.destroy(new UpstreamError('upstream_down', 'was stopped'))
  }
}

/** How old servers answer what they do not know. A refusal, a fault or a redirect is another matter. */
function saysNothingOfEras(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 403
}

function ignore(): undefined {
  return undefined
}

function retryMsOf(answer: HttpAnswer | UpstreamError): number | undefined {
  return answer instanceof UpstreamError ? undefined : answer.retryMs
}

function canResume(answer: HttpAnswer, pending: Pending<Received>, used: Session): boolean {
  const broken = answer.status === 200 && answer.contentType === 'text/event-stream' && !pending.isSettled()
  return broken && used.era === 'legacy' && answer.lastEventId !== undefined
}

function isTransport(error: unknown): boolean {
  return error instanceof UpstreamError && error.code === 'upstream_down' && !(error instanceof SessionLost)
}
