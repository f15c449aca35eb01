import { type JsonObject, toJsonText } from '@toolgate/values/json'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonRpcError, RequestId } from '@toolgate/mcp'
import type { Session } from '../servers/transport/http-endpoint.ts'
import type { HttpAnswer } from '../servers/transport/http-answer.ts'
import { LIMITS } from '../servers/transport/limits.ts'
import { createLineSplitter } from '../servers/transport/lines.ts'
import { UpstreamError } from '../model/upstream.ts'
import { ClientSession } from './client-session.ts'
import { GatewayCall } from './gateway-call.ts'
import { GatewayLink } from './gateway-link.ts'
import {
  type ClientRequest,
  CODES,
  encodeNotification,
  errorIn,
  isAnswerTo,
  readLine,
  readMessage,
} from './messages.ts'
import { type BridgeOutcome, Reports, type ReportsOptions } from './reports.ts'
import { ToolHeaders } from './tool-headers.ts'

export interface BridgeOptions extends ReportsOptions {
  /** The gateway's endpoint, such as `http://127.0.0.1:8787/mcp`. */
  readonly url: URL
  /** The caller's key. */
  readonly key: string | undefined
  /** Writes one message to the client. */
  readonly write: (text: string) => void
}

const HEADER_MISMATCH = -32_020
const MAX_PENDING = 1_024
/** A request and its cancellation use different connections, so the cancellation is delayed by this time. */
const CANCEL_AFTER_MS = 50
const GOODBYE_MS = 300

/**
 * Connects one client on stdio to a gateway over Streamable HTTP, in the era that the client chooses.
 *
 * It decides nothing: each message is passed on unchanged.
 */
export class StdioBridge {
  /** Receives bytes from the client. @throws {UpstreamError} `upstream_too_large` */
  readonly receive: (chunk: Buffer) => void
  readonly #write: (text: string) => void
  readonly #reports: Reports
  readonly #link: GatewayLink
  readonly #session: ClientSession
  readonly #headers: ToolHeaders
  readonly #pending = new Map<RequestId, GatewayCall>()

  constructor({ url, key, write, ...options }: BridgeOptions) {
    this.#write = write
    this.#reports = new Reports({ ...options, url })
    this.#link = new GatewayLink(url, key, this.#reports)
    this.#session = new ClientSession({ link: this.#link, forward: this.#forward, log: options.log })
    this.#headers = new ToolHeaders(this.#link)
    this.receive = createLineSplitter(LIMITS.messageBytes, (line, _bytes, isUtf8) => this.#onLine(line, isUtf8))
  }

  /** The best outcome so far. */
  get outcome(): BridgeOutcome {
    return this.#reports.outcome
  }

  /** Resolves when every request has its answer. */
  async idle(): Promise<void> {
    const running = [...this.#pending.values()].filter(({ request }) => request.method !== 'subscriptions/listen')
    await Promise.all(running.map(({ ended }) => ended))
  }

  /** Cancels running requests, and ends the session. */
  async close(): Promise<void> {
    this.#link.closing()
    this.#session.stop()
    const cancelled = [...this.#pending.values()].map((call) => this.#cancel(call))
    cancelled.push(this.#link.end(this.#session.current, GOODBYE_MS))
    await Promise.race([Promise.all(cancelled), sleep(GOODBYE_MS, undefined, { ref: false })])
    await this.#link.close()
  }

  #onLine(text: string, isUtf8: boolean): void {
    const line = readLine(text, isUtf8)
    switch (line.kind) {
      case 'request':
        return void this.#ask(line.request)
      case 'notification':
        return void this.#notify(line)
      case 'answer':
        return void this.#link.forward(text, this.#session.current)
      case 'invalid':
        return this.#refuse(null, line.error)
      case 'empty':
    }
  }

  async #ask(request: ClientRequest): Promise<void> {
    const { id } = request
    const refuse = (code: number, message: string) => this.#refuse(id, { code, message })
    if (this.#pending.has(id)) return refuse(CODES.notMessage, 'A request with this id is running.')
    if (this.#pending.size >= MAX_PENDING)
      return refuse(CODES.unreachable, `More than ${MAX_PENDING} requests are running.`)
    const { endpoint } = this.#link
    const call = new GatewayCall(request, this.#session.of(request), { endpoint, forward: this.#forward })
    this.#pending.set(id, call)
    try {
      const answer = await this.#send(call)
      if (answer && !call.isCancelled) this.#conclude(request, answer)
    } catch (error) {
      if (!call.isCancelled) refuse(CODES.unreachable, this.#reports.unreached(UpstreamError.from(error)))
    } finally {
      this.#pending.delete(id)
      call.end()
    }
  }

  /** Sends a request with the headers that its tool expects. If its session is lost, it is sent again in a new one. */
  async #send(call: GatewayCall): Promise<HttpAnswer | undefined> {
    const { request, session } = call
    const answer = await call.send(this.#headers.of(request))
    this.#reports.reached(answer?.status)
    if (!answer || call.isCancelled) return answer
    if (session.id !== undefined && answer.status === 404 && (await this.#session.renew(session))) {
      call.session = this.#session.current
      return call.send()
    }
    if (session.era === 'modern' && errorIn(answer.text)?.code === HEADER_MISMATCH)
      if (await this.#headers.learn(request, session)) return call.send(this.#headers.of(request))
    return answer
  }

  /** Sends the gateway's answer to the client, or an error that explains why there is none. */
  #conclude(request: ClientRequest, { text, status, sessionId }: HttpAnswer): void {
    const { id } = request
    const message = readMessage(text)
    const error = errorIn(text)
    if (message && isAnswerTo(message, id)) {
      this.#session.answered(request, message, sessionId)
      this.#forward(message, text)
    } else if (error) this.#refuse(id, { ...error, message: this.#reports.refused(status, error.message) })
    else this.#refuse(id, { code: CODES.unreachable, message: this.#reports.unreadable(status) })
  }

  async #notify({ method, params, text }: Omit<ClientRequest, 'id'>): Promise<void> {
    const call = method === 'notifications/cancelled' ? this.#pending.get(params['requestId'] as RequestId) : undefined
    if (call) return this.#cancel(call, text)
    // MCP 2026-07-28 has no other notifications from clients.
    if (!this.#session.isBegun) return
    await this.#link.forward(text, this.#session.current)
    if (method === 'notifications/initialized') void this.#session.listen()
  }

  /** Cancels a request: in MCP 2026-07-28 by closing the connection, in earlier revisions by a notification. */
  async #cancel(call: GatewayCall, line?: string): Promise<void> {
    const { session, request }: { session: Session; request: ClientRequest } = call
    if (session.era === 'modern') return call.cancel()
    const waitMs = CANCEL_AFTER_MS - (performance.now() - call.sentAtMs)
    if (waitMs > 0) await sleep(waitMs)
    await this.#link.forward(line ?? encodeNotification('notifications/cancelled', { requestId: request.id }), session)
    call.cancel()
  }

  /** Passes on a message of the gateway. Its line breaks are escaped. */
  readonly #forward = (message: JsonObject, text: string): void =>
    this.#write(/[\r\n]/.test(text) ? toJsonText(message) : text)

  #refuse(id: RequestId | null, { code, message, data }: JsonRpcError): void {
    const error: JsonRpcError = { code, message, ...(data === undefined ? {} : { data }) }
    this.#write(toJsonText({ jsonrpc: '2.0', id, error }))
  }
}
