import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '@toolgate/values/json'
import { modernHeaders } from '../servers/transport/http-call.ts'
import type { HttpEndpoint, Session } from '../servers/transport/http-endpoint.ts'
import type { HttpAnswer } from '../servers/transport/http-answer.ts'
import type { HttpExchange } from '../servers/transport/http-exchange.ts'
import { reopenDelayMs } from '../servers/transport/lines.ts'
import { type ClientRequest, isAnswerTo, readMessage } from './messages.ts'

interface GatewayCallOptions {
  readonly endpoint: HttpEndpoint
  /** Passes on a message of the gateway. */
  readonly forward: (message: JsonObject, text: string) => void
}

const MAX_RESUMES = 100

/** One request over HTTP, from sending it to its answer. The messages on its stream are forwarded as they arrive. */
export class GatewayCall {
  readonly request: ClientRequest
  /** The MCP session of the request. If the gateway loses it, a new session replaces it. */
  session: Session
  readonly sentAtMs: number = performance.now()
  isCancelled = false
  /** Resolves when the request has its answer, or cannot get one. */
  readonly ended: Promise<void>
  readonly end: () => void
  readonly #options: GatewayCallOptions
  #exchange: HttpExchange | undefined
  #isAnswered = false

  constructor(request: ClientRequest, session: Session, options: GatewayCallOptions) {
    this.request = request
    this.session = session
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.end = resolve
  }

  /**
   * Sends the request. Returns the answer's head and body, or `undefined` if the answer came on an event stream and was
   * forwarded.
   *
   * @throws {UpstreamError} `upstream_down`, `upstream_too_large`, `aborted`
   */
  async send(paramHeaders: readonly string[] = []): Promise<HttpAnswer | undefined> {
    const { request, session } = this
    const { headers } = session
    const ownHeaders =
      session.era === 'modern' ? modernHeaders(request.method, request.params, paramHeaders) : undefined
    return this.#resume(await this.#exchangeWith({ method: 'POST', headers, ownHeaders, body: request.text }))
  }

  /** Cancels the request. */
  cancel(): void {
    this.isCancelled = true
    this.#exchange?.abort()
  }

  #exchangeWith(request: Parameters<HttpEndpoint['exchange']>[0]): Promise<HttpAnswer> {
    this.#exchange = this.#options.endpoint.exchange(request, this.#onEvent)
    return this.#exchange.answer
  }

  /** Resumes an event stream that broke before the answer, if the gateway holds it. */
  async #resume(first: HttpAnswer): Promise<HttpAnswer | undefined> {
    let answer = first
    for (let tries = 0; this.#canResume(answer) && tries < MAX_RESUMES; tries++) {
      await sleep(reopenDelayMs(answer.retryMs))
      if (this.isCancelled) return undefined
      const headers = [...this.session.headers, 'last-event-id', answer.lastEventId ?? '']
      answer = await this.#exchangeWith({ method: 'GET', headers })
    }
    return this.#isAnswered ? undefined : answer
  }

  #canResume({ status, contentType, lastEventId }: HttpAnswer): boolean {
    const isBroken = status === 200 && contentType === 'text/event-stream' && !this.#isAnswered && !this.isCancelled
    return isBroken && this.session.era === 'legacy' && lastEventId !== undefined
  }

  readonly #onEvent = (text: string): void => {
    const message = readMessage(text)
    if (!message || this.isCancelled) return
    if (isAnswerTo(message, this.request.id)) this.#isAnswered = true
    this.#options.forward(message, text)
    if (this.#isAnswered) this.#exchange?.expectEnd()
  }
}
