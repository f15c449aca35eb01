import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '@toolgate/core/internal'
import { type JsonRpcError, META, type RequestId } from '@toolgate/mcp'
import { HttpEndpoint, type Session } from '../upstream/http-call.ts'
import type { HttpAnswer } from '../upstream/http-exchange.ts'
import { LIMITS } from '../upstream/limits.ts'
import { createLineSplitter, reopenDelayMs } from '../upstream/lines.ts'
import { findParamHeaders, toParamHeaders } from '../upstream/param-headers.ts'
import { UpstreamError } from '../upstream/upstream.ts'
import { BridgeCall, type ClientRequest, isAnswerTo, readMessage } from './bridge-call.ts'

export interface BridgeOptions {
  /** The gateway's endpoint, such as `http://127.0.0.1:8787/mcp`. */
  readonly url: URL
  /** The key of the one caller. */
  readonly key: string | undefined
  /** Writes one message to the client. */
  readonly write: (text: string) => void
  /** Writes to the log of the client: one line for a person. */
  readonly log: (text: string) => void
  readonly hints: BridgeHints
}

/** What to do, as sentences. */
export interface BridgeHints {
  /** If no gateway answers. */
  readonly start: string
  /** If the gateway refuses the key. */
  readonly key: string
}

/** `refused`: the gateway took the key for no request. */
export type BridgeOutcome = 'served' | 'refused' | 'unreachable'

/** JSON-RPC codes of what this side answers by itself. That of an unreachable gateway is the SDKs' for a closed connection. */
const CODES = { notJson: -32_700, notMessage: -32_600, unreachable: -32_000 } as const
const HEADER_MISMATCH = -32_020
const MAX_PENDING = 1_024
/** Requests and their cancellation travel on different connections, so the cancellation starts later. */
const CANCEL_AFTER_MS = 50
const POST_MS = 5_000
const GOODBYE_MS = 300
const MAX_PAGES = 100

/**
 * Speaks MCP on lines with one client, and Streamable HTTP with a gateway, in whichever era the client chooses.
 *
 * It decides nothing: each message goes on as it came. A session that the gateway no longer knows, as after its restart,
 * is begun again with what the client said at its start.
 */
export class StdioBridge {
  /** Takes bytes of the client. @throws {UpstreamError} `upstream_too_large` */
  readonly receive: (chunk: Buffer) => void
  readonly #options: BridgeOptions
  readonly #endpoint: HttpEndpoint
  readonly #pending = new Map<RequestId, BridgeCall>()
  readonly #closing = new AbortController()
  #session: Session
  /** The client's `initialize`, and the requests that shape its session. */
  #begun: ClientRequest | undefined
  readonly #standing = new Map<string, ClientRequest>()
  #renewing: Promise<boolean> | undefined
  #listening: AbortController | undefined
  #paramHeaders = new Map<string, ReturnType<typeof findParamHeaders>>()
  #outcome: BridgeOutcome = 'unreachable'
  #lastLog = ''
  #ownIds = 0

  constructor(options: BridgeOptions) {
    this.#options = options
    const { url, key } = options
    this.#endpoint = new HttpEndpoint(url, key === undefined ? {} : { authorization: `Bearer ${key}` })
    this.#session = this.#endpoint.bareSession('legacy')
    this.receive = createLineSplitter(LIMITS.messageBytes, (line) => this.#onLine(line))
  }

  /** The best that has happened. */
  get outcome(): BridgeOutcome {
    return this.#outcome
  }

  /** Resolves when every request has its answer. */
  async idle(): Promise<void> {
    const running = [...this.#pending.values()].filter(({ request }) => request.method !== 'subscriptions/listen')
    await Promise.all(running.map(({ ended }) => ended))
  }

  /** Cancels what runs, and ends the session. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#listening?.abort()
    const { id, headers } = this.#session
    const cancelled = [...this.#pending.values()].map((call) => this.#cancel(call))
    if (id !== undefined) cancelled.push(this.#post({ method: 'DELETE', headers }, GOODBYE_MS))
    await Promise.race([Promise.all(cancelled), sleep(GOODBYE_MS, undefined, { ref: false })])
    await this.#endpoint.close()
  }

  #onLine(line: string): void {
    if (line.trim() === '') return
    const message = parse(line)
    if (message === undefined) return this.#refuse(null, CODES.notJson, 'The line is not JSON.')
    if (!isObject(message)) return this.#refuse(null, CODES.notMessage, 'The line is not one JSON-RPC message.')
    const { id, method, params } = message
    if (typeof method !== 'string') return void this.#forward(line)
    const given = isObject(params) ? params : {}
    if (isId(id)) return void this.#ask({ id, method, params: given, text: line })
    if (id !== undefined) return this.#refuse(null, CODES.notMessage, 'The "id" must be a text or a number.')
    void this.#notify(method, given, line)
  }

  async #ask(request: ClientRequest): Promise<void> {
    const { id } = request
    if (this.#pending.has(id)) return this.#refuse(id, CODES.notMessage, 'A request with this id is running.')
    if (this.#pending.size >= MAX_PENDING)
      return this.#refuse(id, CODES.unreachable, `More than ${MAX_PENDING} requests are running.`)
    const call = this.#newCall(request, this.#sessionOf(request))
    this.#pending.set(id, call)
    try {
      await this.#conclude(call, await this.#send(call))
    } catch (error) {
      if (!call.isCancelled) this.#fail(id, UpstreamError.from(error))
    } finally {
      this.#pending.delete(id)
      call.end()
    }
  }

  #newCall(request: ClientRequest, session: Session): BridgeCall {
    const forward = (message: JsonObject, text: string) => this.#write(message, text)
    return new BridgeCall(request, session, { endpoint: this.#endpoint, forward })
  }

  /** Sends a request, again in a new session if its own is lost, and with the headers that its tool wants. */
  async #send(call: BridgeCall): Promise<HttpAnswer | undefined> {
    const { request, session } = call
    const answer = await call.send(this.#paramHeadersOf(request))
    this.#reached(answer?.status)
    if (!answer || call.isCancelled) return answer
    if (session.id !== undefined && answer.status === 404 && (await this.#renew(session))) {
      call.session = this.#session
      return call.send()
    }
    if (session.era === 'modern' && errorIn(answer)?.code === HEADER_MISMATCH && (await this.#learnHeaders(request)))
      return call.send(this.#paramHeadersOf(request))
    return answer
  }

  async #conclude({ request, isCancelled }: BridgeCall, answer: HttpAnswer | undefined): Promise<void> {
    if (!answer || isCancelled) return
    const { id, method } = request
    const message = readMessage(answer.text)
    const error = errorIn(answer)
    if (message && isAnswerTo(message, id)) {
      if (method === 'initialize' && isObject(message['result'])) this.#begin(request, message['result'], answer)
      else if (SHAPING.has(method) && 'result' in message) this.#standing.set(keyOf(request), request)
      if (method === 'resources/unsubscribe')
        this.#standing.delete(keyOf({ ...request, method: 'resources/subscribe' }))
      this.#write(message, answer.text)
    } else if (error) {
      const text = isKeyProblem(answer.status) ? `${error.message} ${this.#options.hints.key}`.trim() : error.message
      this.#log(text)
      this.#refuse(id, error.code, text, error.data)
    } else {
      const problem =
        answer.status === 200
          ? `The gateway at ${this.#options.url.origin} ended the answer too early.`
          : `Something that is not a Toolgate gateway answers at ${this.#options.url.origin} (HTTP ${answer.status}).`
      this.#log(problem)
      this.#refuse(id, CODES.unreachable, problem)
    }
  }

  #begin(request: ClientRequest, result: JsonObject, { sessionId }: HttpAnswer): void {
    const version = typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : ''
    this.#begun = request
    this.#standing.clear()
    this.#session = this.#endpoint.legacySession(version, sessionId)
  }

  async #notify(method: string, params: JsonObject, line: string): Promise<void> {
    const call = method === 'notifications/cancelled' ? this.#pending.get(params['requestId'] as RequestId) : undefined
    if (call) return this.#cancel(call, line)
    // MCP 2026-07-28 has no other notifications of clients.
    if (this.#begun === undefined) return
    await this.#forward(line)
    if (method === 'notifications/initialized') void this.#listen(this.#session)
  }

  /** MCP 2026-07-28 cancels over HTTP by closing the connection, earlier revisions by a notification. */
  async #cancel(call: BridgeCall, line?: string): Promise<void> {
    const { session, request } = call
    if (session.era === 'modern') return call.cancel()
    const waitMs = CANCEL_AFTER_MS - (performance.now() - call.sentAtMs)
    if (waitMs > 0) await sleep(waitMs)
    const params = { requestId: request.id }
    await this.#forward(line ?? JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }), session)
    call.cancel()
  }

  /** Sends a notification, or an answer to a request of a server. */
  async #forward(line: string, { headers }: Session = this.#session): Promise<void> {
    await this.#post({ method: 'POST', headers, body: line }, POST_MS)
  }

  async #post(request: Parameters<HttpEndpoint['exchange']>[0], timeoutMs: number): Promise<void> {
    const sent = this.#endpoint.exchange(request)
    const timer = setTimeout(sent.abort, timeoutMs)
    try {
      const { status } = await sent.answer
      this.#reached(status)
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#unreached(UpstreamError.from(error))
    } finally {
      clearTimeout(timer)
    }
  }

  /** Keeps the stream open on which the gateway sends what belongs to no request, for one session. */
  async #listen(session: Session): Promise<void> {
    this.#listening?.abort()
    const listening = new AbortController()
    this.#listening = listening
    const onEvent = (text: string) => {
      const message = readMessage(text)
      if (message) this.#write(message, text)
    }
    for (let delayMs: number | undefined; !listening.signal.aborted;) {
      const stream = this.#endpoint.exchange({ method: 'GET', headers: session.headers }, onEvent)
      listening.signal.addEventListener('abort', stream.abort, { once: true })
      const answer = await stream.answer.catch(() => undefined)
      listening.signal.removeEventListener('abort', stream.abort)
      if (listening.signal.aborted) return
      if (answer?.status === 404) return void (await this.#renew(session))
      if (answer && (answer.status !== 200 || answer.contentType !== 'text/event-stream') && answer.status < 500) return
      delayMs = answer?.status === 200 ? reopenDelayMs(answer.retryMs) : reopenDelayMs((delayMs ?? 500) * 2)
      await sleep(delayMs, undefined, { ref: false, signal: listening.signal }).catch(() => {})
    }
  }

  /** Begins the session again, once for all that lost the same one. Returns whether there is one. */
  async #renew(lost: Session): Promise<boolean> {
    if (lost !== this.#session) return true
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  async #renewOnce(): Promise<boolean> {
    const begun = this.#begun
    if (!begun) return false
    const opened = await this.#askOwn(begun, this.#endpoint.bareSession('legacy'))
    const result = opened?.message['result']
    if (!opened || !isObject(result)) return false
    const standing = [...this.#standing.values()]
    this.#begin(begun, result, opened.answer)
    await this.#forward(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
    for (const request of standing) {
      await this.#askOwn(request, this.#session)
      this.#standing.set(keyOf(request), request)
    }
    this.#options.log('The gateway began a new session.')
    void this.#listen(this.#session)
    // What changed meanwhile was not announced.
    for (const list of Object.keys(isObject(result['capabilities']) ? result['capabilities'] : {}))
      if (LISTS.has(list))
        this.#options.write(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }))
    return true
  }

  /** Sends a request of this side's own. Returns `undefined` if it has no answer. */
  async #askOwn(
    request: Omit<ClientRequest, 'id' | 'text'>,
    session: Session,
  ): Promise<{ readonly message: JsonObject; readonly answer: HttpAnswer } | undefined> {
    const { method, params } = request
    const id = `toolgate-${++this.#ownIds}`
    let message: JsonObject | undefined
    const forward = (one: JsonObject) => (message = isAnswerTo(one, id) ? one : message)
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const call = new BridgeCall({ id, method, params, text }, session, { endpoint: this.#endpoint, forward })
    const answer = await call.send()
    if (!answer) return undefined
    message = readMessage(answer.text)
    return message && isAnswerTo(message, id) ? { message, answer } : undefined
  }

  #paramHeadersOf({ method, params }: ClientRequest): readonly string[] {
    const headers = method === 'tools/call' ? this.#paramHeaders.get(String(params['name'])) : undefined
    return headers === undefined || typeof headers === 'string' ? [] : toParamHeaders(headers, params['arguments'])
  }

  /** A client on stdio sends no headers, so the ones of its tools are read from the list. Returns whether there are some. */
  async #learnHeaders(request: ClientRequest): Promise<boolean> {
    const { method, params } = request
    if (method !== 'tools/call') return false
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const asked = { _meta: params['_meta'], ...(cursor === undefined ? {} : { cursor }) }
      const listed = await this.#askOwn({ method: 'tools/list', params: asked }, this.#sessionOf(request))
      const result = listed?.message['result']
      if (!isObject(result) || !Array.isArray(result['tools'])) return false
      for (const tool of result['tools'])
        if (isObject(tool) && isObject(tool['inputSchema']))
          this.#paramHeaders.set(String(tool['name']), findParamHeaders(tool['inputSchema']))
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') break
    }
    return this.#paramHeadersOf(request).length > 0
  }

  /** Returns how a request is sent: its envelope names the revision of MCP 2026-07-28 and later. */
  #sessionOf({ method, params }: Pick<ClientRequest, 'method' | 'params'>): Session {
    const meta = params['_meta']
    const claimed = isObject(meta) ? meta[META.protocolVersion] : undefined
    if (typeof claimed === 'string' && VERSION.test(claimed)) {
      const { headers } = this.#endpoint.bareSession('legacy')
      return { era: 'modern', id: undefined, headers: [...headers, 'mcp-protocol-version', claimed] }
    }
    return method === 'initialize' ? this.#endpoint.bareSession('legacy') : this.#session
  }

  /** A message holds no line break, except as an escape. */
  #write(message: JsonObject, text: string): void {
    this.#options.write(/[\r\n]/.test(text) ? JSON.stringify(message) : text)
  }

  #refuse(id: RequestId | null, code: number, message: string, data?: unknown): void {
    const error: JsonRpcError = { code, message, ...(data === undefined ? {} : { data }) }
    this.#options.write(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }

  #fail(id: RequestId, error: UpstreamError): void {
    this.#refuse(id, CODES.unreachable, this.#unreached(error))
  }

  #reached(status: number = 200): void {
    if (!isKeyProblem(status)) this.#outcome = 'served'
    else if (this.#outcome === 'unreachable') this.#outcome = 'refused'
    if (!isKeyProblem(status)) this.#lastLog = ''
  }

  /** Returns the problem. */
  #unreached(error: UpstreamError): string {
    const { url, hints } = this.#options
    const problem = `The gateway at ${url.origin} ${error.message}. ${hints.start}`.trim()
    this.#log(problem)
    return problem
  }

  /** Logs a problem once, until something works again. */
  #log(text: string): void {
    if (text !== this.#lastLog) this.#options.log(text)
    this.#lastLog = text
  }
}

function isKeyProblem(status: number): boolean {
  return status === 401 || status === 403
}

const VERSION = /^[\w.-]{1,64}$/
const LISTS: ReadonlySet<string> = new Set(['tools', 'resources', 'prompts'])
/** Requests that the gateway remembers for a session. */
const SHAPING: ReadonlySet<string> = new Set(['logging/setLevel', 'resources/subscribe'])

function keyOf({ method, params }: ClientRequest): string {
  return method === 'logging/setLevel' ? method : `${method} ${String(params['uri'])}`
}

function errorIn({ text }: HttpAnswer): JsonRpcError | undefined {
  const error = readMessage(text)?.['error']
  if (!isObject(error) || !Number.isInteger(error['code']) || typeof error['message'] !== 'string') return undefined
  return { code: Number(error['code']), message: error['message'], data: error['data'] }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'string' || typeof id === 'number'
}
