import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '@toolgate/values/json'
import { type AskedClients, type AskedRequest, NOBODY } from './asked-clients.ts'
import { createPending, type Pending, type RequestOptions } from './connection.ts'
import type { RequestCredential } from './credential.ts'
import type { HttpEndpoint, Session } from './http-endpoint.ts'
import { EVENT_STREAM, type HttpAnswer, isSuccess } from './http-answer.ts'
import { answerError } from './http-errors.ts'
import type { HttpExchange, HttpRequest } from './http-exchange.ts'
import {
  answersOther,
  clip,
  notMcp,
  parseMessages,
  rpcError,
  type RpcMessage,
  type ServerMessage,
  toOwnId,
} from './json-rpc.ts'
import { reopenDelayMs } from './lines.ts'
import { DISCOVER, encodeRequest, joinMeta, toHeaderValue } from './protocol.ts'
import { UpstreamError } from '../../model/upstream.ts'

const MAX_RESUMES = 100
/** The param that a request repeats in its `Mcp-Name` header. */
const NAME_PARAMS: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/** Returns the headers that a request of MCP 2026-07-28 has besides those of its session. */
export function modernHeaders(
  method: string,
  params: JsonObject,
  paramHeaders: readonly string[] = [],
): readonly string[] {
  const param = NAME_PARAMS.get(method)
  const name = param === undefined ? undefined : params[param]
  const named = typeof name === 'string' ? ['mcp-name', toHeaderValue(name)] : []
  return ['mcp-method', method, ...named, ...paramHeaders]
}

/** The result of a request, and the session id sent with it. */
export interface Received {
  readonly result: JsonObject
  readonly sessionId: string | undefined
}

/** The parts of a connection that a call uses. */
export interface CallHost {
  readonly endpoint: HttpEndpoint
  readonly clients: AskedClients
  /** Handles a notification or a request of the server. `of`: the request on whose stream it came, if any. */
  onMessage(message: ServerMessage, session: Session, of?: AskedRequest): void
  /** The sessions in which the server has answered a request with a result. */
  readonly proven: WeakSet<Session>
  /** Called when the connection broke. */
  onBroken(error: UpstreamError): void
}

/** One JSON-RPC request over HTTP, from sending it to its answer. */
export class HttpCall {
  readonly #host: CallHost
  readonly #session: Session
  readonly #id: number
  readonly #method: string
  readonly #pending: Pending<Received>
  #asked = NOBODY
  #removeAsked: (() => void) | undefined
  readonly #checkStart: (() => void) | undefined
  #exchange: HttpExchange | undefined

  constructor(host: CallHost, session: Session, id: number, method: string, options: RequestOptions) {
    this.#host = host
    this.#session = session
    this.#id = id
    this.#method = method
    this.#checkStart = options.checkStart
    const onSettled = options.client && (() => this.#removeAsked?.())
    this.#pending = createPending<Received>(options, (error) => this.#giveUp(error), onSettled)
  }

  /** @throws {UpstreamError} */
  send(params: JsonObject, options: RequestOptions): Promise<Received> {
    const { client } = options
    const added = client && this.#host.clients.add({ client, hold: this.#pending.hold })
    if (added) {
      this.#asked = added.request
      this.#removeAsked = added.remove
    }
    this.#roundTrip(params, options).catch((thrown: unknown) => {
      const error = UpstreamError.from(thrown)
      this.#pending.reject(error)
      if (error.code === 'upstream_down') this.#host.onBroken(error)
    })
    return this.#pending.promise
  }

  async #roundTrip(params: JsonObject, { onProgress, paramHeaders, trace, meta }: RequestOptions): Promise<void> {
    const { era } = this.#session
    const { headers } = this.#session
    const ownHeaders = era === 'modern' ? modernHeaders(this.#method, params, paramHeaders) : undefined
    trace?.sentAs(this.#id)
    const body = encodeRequest(era, this.#id, this.#method, params, {
      progress: onProgress !== undefined,
      meta: trace ? joinMeta(trace.meta, meta) : meta,
    })
    const request = { method: 'POST', headers, ownHeaders, body } as const
    const { endpoint } = this.#host
    const send = () => (endpoint.credential ? this.#askAs(endpoint.credential, request) : this.#exchangeWith(request))
    let first = await send()
    if (first.location !== undefined && this.#follows(first)) first = await send()
    const answer = first.contentType === EVENT_STREAM ? await this.#resume(first) : first
    if (answer && !this.#pending.isSettled()) this.#conclude(answer)
  }

  /** Whether the server has moved by a slash. A redirected call has not run, except perhaps with 301 and 302. */
  #follows(answer: HttpAnswer): boolean {
    if (this.#pending.isSettled()) return false
    return this.#host.endpoint.follow(answer, this.#exchange?.path, this.#method !== 'tools/call')
  }

  /**
   * Sends a request with a credential. If the credential was refused and there is another one, the request is sent once
   * more. A refused request has not run.
   */
  async #askAs(credential: RequestCredential, request: Omit<HttpRequest, 'path'>): Promise<HttpAnswer> {
    await credential.prepare()
    const { header } = credential
    const answer = await this.#exchangeWith(request)
    if (answer.status !== 401 || header === undefined || this.#pending.isSettled()) return answer
    return (await credential.renew(header)) && !this.#pending.isSettled() ? this.#exchangeWith(request) : answer
  }

  #exchangeWith(request: Omit<HttpRequest, 'path'>): Promise<HttpAnswer> {
    if (request.method === 'POST') this.#checkStart?.()
    this.#exchange = this.#host.endpoint.exchange(request, this.#onEvent)
    return this.#exchange.answer
  }

  /** Resumes an event stream that broke before the answer. Returns `undefined` once the request has settled. */
  async #resume(broken: HttpAnswer): Promise<HttpAnswer | undefined> {
    let answer = broken
    for (let tries = 0; this.#canResume(answer) && tries < MAX_RESUMES; tries++) {
      await sleep(reopenDelayMs(answer.retryMs), undefined, { ref: false })
      if (this.#pending.isSettled()) return undefined
      const { headers } = this.#session
      answer = await this.#exchangeWith({
        method: 'GET',
        headers,
        ownHeaders: ['last-event-id', answer.lastEventId ?? ''],
      })
    }
    return answer
  }

  #canResume({ status, contentType, lastEventId }: HttpAnswer): boolean {
    const isBrokenStream = isSuccess(status) && contentType === EVENT_STREAM && !this.#pending.isSettled()
    return isBrokenStream && this.#session.era === 'legacy' && lastEventId !== undefined
  }

  readonly #onEvent = (data: string): void => {
    this.#read(data, this.#exchange?.sessionId())
    if (this.#pending.isSettled()) this.#exchange?.expectEnd()
  }

  #read(text: string, sessionId: string | undefined): void {
    for (const message of parseMessages(text)) {
      if (message.kind === 'notification' || message.kind === 'request') this.#onServerMessage(message)
      else if (message.id !== this.#id && !isUnnamedError(message)) continue
      else if (message.kind === 'result') {
        this.#host.proven.add(this.#session)
        this.#pending.resolve({ result: message.result, sessionId })
      } else this.#pending.reject(message.kind === 'error' ? rpcError(message.error) : message.error)
    }
  }

  #onServerMessage(message: ServerMessage): void {
    if (message.kind === 'notification' && message.method === 'notifications/progress') {
      if (toOwnId(message.params['progressToken']) === this.#id) this.#pending.progress(message.params)
      return
    }
    this.#host.onMessage(message, this.#session, this.#asked)
    // MCP 2026-07-28 has no way to answer a server's request, so the server would wait forever.
    if (message.kind === 'request' && this.#session.era === 'modern')
      this.#pending.reject(
        new UpstreamError('upstream_protocol', `sent the request ${clip(message.method, 50)} to its client`),
      )
  }

  /** Settles a request whose answer has ended, with the JSON in it, or with an error that describes it. */
  #conclude(answer: HttpAnswer): void {
    const { status, contentType, text, sessionId } = answer
    if (isSuccess(status) && contentType === EVENT_STREAM) {
      this.#pending.reject(new UpstreamError('upstream_protocol', 'ended its event stream before it answered'))
    } else if (isSuccess(status) && text !== '') {
      // The media type of a JSON text carries no meaning: some servers leave it out, or write another one.
      this.#read(text, sessionId)
      if (!this.#pending.isSettled()) this.#pending.reject(this.#explain(text))
    } else {
      this.#pending.reject(this.#errorOf(answer))
    }
  }

  #errorOf(answer: HttpAnswer): UpstreamError {
    return answerError(answer, {
      id: this.#id,
      inSession: this.#session.id !== undefined,
      isProbe: this.#method === DISCOVER,
      url: this.#host.endpoint.urlOf(this.#exchange?.path),
    })
  }

  /** Returns the error for JSON that does not answer this request. */
  #explain(text: string): UpstreamError {
    if (!parseMessages(text).some((message) => answersOther(message, this.#id))) return notMcp(text)
    // The answer may belong to another user. The next answer on this connection would be shifted too.
    this.#exchange?.cutConnection?.()
    return new UpstreamError('upstream_protocol', 'answered another request')
  }

  #giveUp({ message: reason }: UpstreamError): void {
    this.#exchange?.abort()
    // Closing the connection cancels a request in MCP 2026-07-28, but not in earlier revisions.
    if (this.#session.era === 'modern' || this.#method === 'initialize') return
    const params = { requestId: this.#id, reason }
    const message = { jsonrpc: '2.0', method: 'notifications/cancelled', params }
    this.#host.endpoint.post(this.#session, message).catch(ignore)
  }
}

/** An error that answers a request whose id the server could not read, or did not. */
function isUnnamedError(message: RpcMessage): boolean {
  return message.kind === 'error' && (message.id === null || typeof message.id === 'string')
}

function ignore(): undefined {
  return undefined
}
